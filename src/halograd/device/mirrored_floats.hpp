#pragma once

#include "halograd/device/device.hpp"

#include <cstdint>
#include <span>

namespace halograd {

/// A flat array of floats on a device, and a copy of it on the host where that is another place: on the processor the
/// two are one, and nothing is copied. Zero at first.
class MirroredFloats {
public:
  MirroredFloats() = default;
  MirroredFloats(const Device& device, std::int64_t count) : count_(count), device_(device.allocate(4 * count)) {
    host_ = device.implementation() == nullptr ? device_ : Device().allocate(4 * count);
  }

  [[nodiscard]] std::int64_t size() const { return count_; }
  [[nodiscard]] float* on_device() const { return device_.floats(); }
  [[nodiscard]] std::span<float> on_host() const { return {host_.floats(), static_cast<std::size_t>(count_)}; }

  /// Brings the host's copy up to date, behind all that `queue` was given before; waits for it.
  void to_host(const Queue& queue) const {
    if (is_one()) return;
    queue.copy(on_device(), host_.floats(), 4 * count_);
    queue.synchronize();
  }
  /// The other way; what `queue` is given from now on sees it.
  void to_device(const Queue& queue) const {
    if (is_one()) return;
    queue.copy(host_.floats(), on_device(), 4 * count_);
    queue.synchronize();  // the host may change its copy again at once
  }

private:
  [[nodiscard]] bool is_one() const { return host_.data() == device_.data(); }

  std::int64_t count_ = 0;
  DeviceMemory device_;
  DeviceMemory host_;
};

}  // namespace halograd
