#include "halograd/device/cuda/cuda_device.hpp"

#include "halograd/device/cuda/cuda_memory.hpp"
#include "halograd/device/cuda/cuda_queue.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <fmt/format.h>

namespace halograd::cuda {
namespace {

struct FreeAndTotal {
  std::size_t available = 0;
  std::size_t total = 0;
};

FreeAndTotal memory_of(int index) {
  FreeAndTotal memory;
  make_current(index);
  check(cudaMemGetInfo(&memory.available, &memory.total), "asking for a GPU's memory");
  return memory;
}

}  // namespace

CudaDevice::CudaDevice(int index, std::string model, std::string id)
    : index_(index), name_(fmt::format("cuda {}: {}", index, model)), id_(std::move(id)) {}

Queue CudaDevice::make_queue(Priority priority) {
  return {Backend::cuda, std::make_shared<CudaQueue>(index_, priority)};
}

DeviceMemory CudaDevice::reserve(std::int64_t capacity) {
  return reserve_memory(index_, name_, capacity);
}

DeviceMemory CudaDevice::allocate(std::int64_t bytes) {
  return allocate_memory(index_, name_, bytes);
}

DeviceMemory CudaDevice::allocate_host(std::int64_t bytes) {
  return allocate_pinned(index_, bytes);
}

std::int64_t CudaDevice::available_bytes() const {
  return static_cast<std::int64_t>(memory_of(index_).available);
}

std::int64_t CudaDevice::total_bytes() const {
  return static_cast<std::int64_t>(memory_of(index_).total);
}

}  // namespace halograd::cuda
