#pragma once

#include "halograd/core/bf16.hpp"
#include "halograd/device/cuda_device.hpp"
#include "kernels/support.hpp"

#include <cstddef>
#include <vector>

namespace halograd::test {

/// A test on this process's first GPU; skipped where there is none.
class OnGpu : public testing::Test {
protected:
  void SetUp() override {
    const auto devices = cuda_devices();
    if (devices.empty()) GTEST_SKIP() << why_no_cuda();
    device = open_cuda_device(devices.front().index);
    queue = device.make_queue();
  }

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

  Device device;
  Queue queue;
};

/// As they are kept in `type`.
inline std::vector<float> rounded(std::vector<float> values, DType type) {
  if (type == DType::bf16) {
    for (float& value : values) value = static_cast<float>(Bf16(value));
  }
  return values;
}

}  // namespace halograd::test
