#include "halograd/kernels/cuda/versions.hpp"

#include "halograd/kernels/cuda/cublaslt.hpp"

#include <cudnn.h>
#include <fmt/format.h>

namespace halograd::cuda {
namespace {

// Both libraries write 9.19.0 as 91900.
std::string dotted(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

std::string cuda_library_versions() {
  return fmt::format("cuDNN {}, cuBLASLt {}", dotted(cudnnGetVersion()), dotted(cublaslt().get_version()));
}

}  // namespace halograd::cuda
