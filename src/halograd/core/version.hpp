#pragma once

#include <string>

namespace halograd {

/// HaloGrad's version, "0.1.0".
std::string version();

/// The compiler it was built with, "GNU 12.2.0".
std::string compiler_version();

/// How it was built, "Release".
std::string build_type();

}  // namespace halograd
