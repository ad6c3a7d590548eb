#pragma once

#include <string>

namespace halograd {

/// The CUDA runtime that is built in and the newest that the driver bears, "CUDA runtime 13.0, driver none" where no
/// driver is installed; "built without CUDA".
std::string cuda_versions();

}  // namespace halograd
