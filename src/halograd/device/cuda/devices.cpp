#include "halograd/core/error.hpp"
#include "halograd/device/cuda/cuda_device.hpp"
#include "halograd/device/cuda/runtime.hpp"
#include "halograd/device/cuda_device.hpp"

#include <array>
#include <fstream>

namespace halograd {
namespace {

// The oldest compute capability (ten times it) that this toolkit compiles for.
constexpr int oldest_capability = CUDART_VERSION >= 13000 ? 75 : 70;

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

struct Count {
  int devices = 0;
  std::string failure;  // why there are none
};

Count count_devices() {
  int driver = 0;
  // Succeeds without a driver; it then has version 0.
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return {.failure = "no NVIDIA driver"};
  if (driver / 1000 < CUDART_VERSION / 1000) {
    return {.failure = fmt::format("the NVIDIA driver is too old: it runs CUDA {}, this program needs {}",
                                   version_text(driver), version_text(CUDART_VERSION))};
  }
  Count count;
  const cudaError_t status = cudaGetDeviceCount(&count.devices);
  if (status == cudaSuccess && count.devices > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess || status == cudaErrorNoDevice) return {.failure = "no NVIDIA GPU"};
  return {.failure = fmt::format("CUDA does not start: {}", cudaGetErrorString(status))};
}

// The place on its machine's bus and that machine's start, as NCCL tells GPUs apart: parts of a GPU (MIG) have one
// place, and processes in several containers see one start.
std::string id_of(int index) {
  std::array<char, 32> place{};
  if (cudaDeviceGetPCIBusId(place.data(), static_cast<int>(place.size()), index) != cudaSuccess) {
    fmt::format_to_n(place.data(), place.size() - 1, "GPU {}", index);
  }
  std::string start;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> start;
  return fmt::format("{} {}", place.data(), start);
}

}  // namespace

std::vector<CudaDeviceInfo> cuda_devices() {
  std::vector<CudaDeviceInfo> found;
  const int count = count_devices().devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      continue;
    }
    found.push_back({.index = index,
                     .name = properties.name,
                     .id = id_of(index),
                     .major = properties.major,
                     .minor = properties.minor,
                     .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  return found;
}

std::string why_no_cuda() {
  return count_devices().failure;
}

Device open_cuda_device(int index) {
  const Count count = count_devices();
  if (count.devices == 0) throw ResourceError("{}: nothing can be computed on a GPU here", count.failure);
  if (index < 0 || index >= count.devices) {
    throw ResourceError("there is no GPU {}: this process sees {}", index, count.devices);
  }
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, index), "asking for a GPU's properties");
  if (10 * properties.major + properties.minor < oldest_capability) {
    throw ResourceError("GPU {}, {}, has compute capability {}.{}; {}.{} or later is needed", index, properties.name,
                        properties.major, properties.minor, oldest_capability / 10, oldest_capability % 10);
  }
  auto device = std::make_shared<cuda::CudaDevice>(index, properties.name, id_of(index));
  // The first call that needs the GPU: fails where it is taken by another process alone.
  static_cast<void>(device->available_bytes());
  return {Backend::cuda, device};
}

}  // namespace halograd
