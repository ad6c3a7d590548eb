#include "halograd/kernels/cuda/versions.hpp"

namespace halograd::cuda {

std::string cuda_library_versions() {
  return "built without CUDA";
}

}  // namespace halograd::cuda
