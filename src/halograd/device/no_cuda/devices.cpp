#include "halograd/core/error.hpp"
#include "halograd/device/cuda_device.hpp"

namespace halograd {

std::vector<CudaDeviceInfo> cuda_devices() {
  return {};
}

std::string why_no_cuda() {
  return "built without CUDA";
}

Device open_cuda_device(int) {
  throw ResourceError("built without CUDA: nothing can be computed on a GPU here");
}

}  // namespace halograd
