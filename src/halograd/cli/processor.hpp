#pragma once

#include <string>
#include <vector>

namespace halograd {

/// What the system tells of the processor (/proc/cpuinfo).
struct Processor {
  std::string model;                  ///< empty where it isn't told
  std::vector<std::string> features;  ///< the vector and matrix units among its features, as the system spells them
};
Processor this_processor();

}  // namespace halograd
