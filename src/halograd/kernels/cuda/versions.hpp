#pragma once

#include <string>

namespace halograd::cuda {

/// The vendor libraries that this process runs with, "cuDNN 9.19.0, cuBLASLt 13.1.0", or "built without CUDA".
std::string cuda_library_versions();

}  // namespace halograd::cuda
