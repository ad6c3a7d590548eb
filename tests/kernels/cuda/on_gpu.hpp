#pragma once

#include "kernels/cuda/on_device.hpp"

#include <cstddef>
#include <vector>

namespace halograd::test {

/// A test on this process's first GPU; skipped where there is none.
class OnGpu : public DeviceTest {
protected:
  void SetUp() override { open(Backend::cuda); }

  /// Copies of values, in the device's memory.
  [[nodiscard]] DeviceMemory upload(const std::vector<float>& values, DType type = DType::f32) const {
    const auto bytes = static_cast<std::int64_t>(values.size()) * dtype_size(type);
    const DeviceMemory memory = device.allocate(bytes);
    if (type == DType::bf16) {
      std::vector<Bf16> narrow;
      for (const float value : values) narrow.emplace_back(value);
      queue.copy(narrow.data(), memory.data(), bytes);
      queue.synchronize();
      return memory;
    }
    queue.copy(values.data(), memory.data(), bytes);
    queue.synchronize();
    return memory;
  }

  [[nodiscard]] std::vector<float> download(const DeviceMemory& memory, std::size_t count,
                                            DType type = DType::f32) const {
    std::vector<float> values(count);
    if (type == DType::bf16) {
      std::vector<Bf16> narrow(count);
      queue.copy(memory.data(), narrow.data(), static_cast<std::int64_t>(count) * 2);
      queue.synchronize();
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(narrow[i]);
      return values;
    }
    queue.copy(memory.data(), values.data(), static_cast<std::int64_t>(count) * 4);
    queue.synchronize();
    return values;
  }
};

}  // namespace halograd::test
