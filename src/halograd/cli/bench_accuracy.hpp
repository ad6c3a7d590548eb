#pragma once

#include "halograd/comm/communicator.hpp"

#include <string>
#include <vector>

namespace halograd {

struct BenchAccuracyOptions {
  std::vector<std::string> reports;
  std::string chart;  ///< an SVG file; empty: none
};

/// The table: step and memory, measured and predicted, of each report, then the median and the largest error. Throws
/// DataError where a file is no report with a prediction.
std::string bench_accuracy(const Communicator& world, const BenchAccuracyOptions& options);

}  // namespace halograd
