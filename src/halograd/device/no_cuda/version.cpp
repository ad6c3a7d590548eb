#include "halograd/device/cuda_version.hpp"

namespace halograd {

std::string cuda_versions() {
  return "built without CUDA";
}

}  // namespace halograd
