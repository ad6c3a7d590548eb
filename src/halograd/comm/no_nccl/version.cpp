#include "halograd/comm/nccl_version.hpp"

namespace halograd::comm {

std::string nccl_version() {
  return "built without CUDA";
}

}  // namespace halograd::comm
