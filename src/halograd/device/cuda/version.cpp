#include "halograd/device/cuda_version.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace halograd {
namespace {

std::string major_and_minor(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

std::string cuda_versions() {
  int runtime = 0;
  int driver = 0;
  // Both succeed without a driver; it then has version 0.
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess || cudaDriverGetVersion(&driver) != cudaSuccess) {
    return "CUDA runtime of unknown version";
  }
  return fmt::format("CUDA runtime {}, driver {}", major_and_minor(runtime),
                     driver == 0 ? "none" : major_and_minor(driver));
}

}  // namespace halograd
