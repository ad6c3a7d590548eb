#pragma once

#include "halograd/device/queue.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halograd {

/// Memory of a device, or of the host where a device can reach it. Zero at first.
class DeviceMemory {
public:
  class Implementation;
  DeviceMemory() = default;
  explicit DeviceMemory(std::shared_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}

  [[nodiscard]] std::byte* data() const;
  [[nodiscard]] std::int64_t capacity() const;
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(data()); }
  /// Makes the first `bytes` usable; what is there stays. Throws ResourceError where the device has no more.
  void commit(std::int64_t bytes) const;

private:
  std::shared_ptr<Implementation> implementation_;
};

class DeviceMemory::Implementation {
public:
  virtual ~Implementation() = default;
  [[nodiscard]] virtual std::byte* data() const = 0;
  [[nodiscard]] virtual std::int64_t capacity() const = 0;
  virtual void commit(std::int64_t bytes) = 0;
};

/// Whose work goes first where two queues of a GPU wait: that of `high` ones (communication).
enum class Priority { normal, high };

/// Where a rank computes: the processor, or one of its node's GPUs. A small value, copied by reference.
class Device {
public:
  /// The processor, with the backend `cpu` or `reference`. Implicit, as of Queue.
  Device(Backend backend = Backend::cpu) : backend_(backend) {}

  class Implementation;
  Device(Backend backend, std::shared_ptr<Implementation> implementation)
      : backend_(backend), implementation_(std::move(implementation)) {}

  [[nodiscard]] Backend backend() const { return backend_; }
  /// "cpu", or "cuda 0: NVIDIA H200".
  [[nodiscard]] std::string name() const;
  /// The same for every process that uses this device, another one for every other; empty for the processor.
  [[nodiscard]] std::string id() const;
  [[nodiscard]] Queue make_queue(Priority priority = Priority::normal) const;
  /// Address space for up to `capacity` bytes that never moves. The processor gives memory where it is first touched; a
  /// GPU where commit() asks for it.
  [[nodiscard]] DeviceMemory reserve(std::int64_t capacity) const;
  /// Memory at once; small pieces cost little.
  [[nodiscard]] DeviceMemory allocate(std::int64_t bytes) const;
  /// Host memory that the device's copies reach without a detour (pinned).
  [[nodiscard]] DeviceMemory allocate_host(std::int64_t bytes) const;
  /// What is left, and what there is in all.
  [[nodiscard]] std::int64_t available_bytes() const;
  [[nodiscard]] std::int64_t total_bytes() const;

  [[nodiscard]] Implementation* implementation() const { return implementation_.get(); }

private:
  Backend backend_;
  std::shared_ptr<Implementation> implementation_;
};

class Device::Implementation {
public:
  virtual ~Implementation() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string id() const = 0;
  [[nodiscard]] virtual Queue make_queue(Priority priority) = 0;
  [[nodiscard]] virtual DeviceMemory reserve(std::int64_t capacity) = 0;
  [[nodiscard]] virtual DeviceMemory allocate(std::int64_t bytes) = 0;
  [[nodiscard]] virtual DeviceMemory allocate_host(std::int64_t bytes) = 0;
  [[nodiscard]] virtual std::int64_t available_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t total_bytes() const = 0;
};

}  // namespace halograd
