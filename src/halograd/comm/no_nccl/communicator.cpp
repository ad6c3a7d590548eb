#include "halograd/comm/nccl_communicator.hpp"
#include "halograd/core/error.hpp"

namespace halograd {

bool nccl_available() {
  return false;
}

std::shared_ptr<NcclCommunicator> make_nccl_communicator(const Communicator&, const Device&) {
  throw ResourceError("this program was built without NCCL; HALOGRAD_NCCL=0 does without it");
}

}  // namespace halograd
