#pragma once

#include <string>

namespace halograd {

/// The FFTW that this process runs with, "3.3.10".
std::string fftw_version();

}  // namespace halograd
