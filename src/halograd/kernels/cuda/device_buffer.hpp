#pragma once

#include "halograd/device/cuda/runtime.hpp"

#include <cstdint>
#include <memory>

namespace halograd::cuda {

/// Memory of the thread's current GPU that a kernel keeps for itself.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  /// Throws ResourceError naming `what` the memory is for, where there is none left.
  DeviceBuffer(std::int64_t bytes, const char* what) { check(allocate(bytes), what); }

  /// Not set where there is none left.
  static std::unique_ptr<DeviceBuffer> if_there_is(std::int64_t bytes) {
    auto buffer = std::make_unique<DeviceBuffer>();
    if (buffer->allocate(bytes) == cudaSuccess) return buffer;
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }

  [[nodiscard]] void* data() const { return data_.get(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

private:
  struct Free {
    void operator()(void* memory) const { static_cast<void>(cudaFree(memory)); }
  };

  cudaError_t allocate(std::int64_t bytes) {
    if (bytes == 0) return cudaSuccess;
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
    data_.reset(memory);
    if (status == cudaSuccess) bytes_ = bytes;
    return status;
  }

  std::unique_ptr<void, Free> data_;
  std::int64_t bytes_ = 0;
};

}  // namespace halograd::cuda
