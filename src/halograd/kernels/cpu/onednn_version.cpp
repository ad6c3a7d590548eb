#include "halograd/kernels/cpu/onednn_version.hpp"

#include "halograd/kernels/cpu/onednn.hpp"

namespace halograd::cpu {

std::string onednn_version() {
  const dnnl_version_t* const v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace halograd::cpu
