#pragma once

#include "halograd/device/device.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace halograd {

/// One of the node's NVIDIA GPUs, as CUDA_VISIBLE_DEVICES numbers them.
struct CudaDeviceInfo {
  int index = 0;
  std::string name;
  std::string id;  ///< Device::id
  int major = 0;   ///< compute capability
  int minor = 0;
  std::int64_t memory_bytes = 0;
};

/// None without CUDA in the build, without a driver, or without a GPU; never throws.
std::vector<CudaDeviceInfo> cuda_devices();
/// Why cuda_devices() is empty, in a few words ("built without CUDA", "no NVIDIA driver"); empty where it is not.
std::string why_no_cuda();
/// Throws ResourceError, one line saying why, where there is no such GPU or it can't be used.
Device open_cuda_device(int index);

}  // namespace halograd
