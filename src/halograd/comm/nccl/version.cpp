#include "halograd/comm/nccl_version.hpp"

#include <fmt/format.h>
#include <nccl.h>

namespace halograd::comm {

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace halograd::comm
