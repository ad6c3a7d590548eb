#pragma once

#include <string>

namespace halograd::comm {

/// The NCCL that this process runs with, "2.28.9", or "built without CUDA".
std::string nccl_version();

}  // namespace halograd::comm
