#pragma once

#include "halograd/device/device.hpp"

#include <cstdint>
#include <memory>

namespace halograd::cuda {

/// Memory that the convolutions of one queue share, since they never run at once: as much as the one that needs most.
/// Its address stays when it grows, so that recorded graphs stay right.
class Workspace {
public:
  explicit Workspace(const Queue& queue);

  /// Makes it at least so large. Throws ResourceError where the GPU has no room.
  void grow(std::int64_t bytes);
  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

private:
  DeviceMemory memory_;
  std::int64_t bytes_ = 0;
};

/// The queue's, made where nobody holds it.
std::shared_ptr<Workspace> workspace_of(const Queue& queue);

}  // namespace halograd::cuda
