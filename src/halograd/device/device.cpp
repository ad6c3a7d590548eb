#include "halograd/device/device.hpp"

#include "halograd/core/memory.hpp"
#include "halograd/core/system.hpp"

namespace halograd {
namespace {

/// The processor's: the system gives pages as they are touched, so that there is nothing to commit.
class HostMemory final : public DeviceMemory::Implementation {
public:
  explicit HostMemory(std::int64_t capacity) : memory_(capacity) {}
  [[nodiscard]] std::byte* data() const override { return memory_.data(); }
  [[nodiscard]] std::int64_t capacity() const override { return memory_.capacity(); }
  void commit(std::int64_t) override {}

private:
  ReservedMemory memory_;
};

}  // namespace

std::byte* DeviceMemory::data() const {
  return implementation_ ? implementation_->data() : nullptr;
}

std::int64_t DeviceMemory::capacity() const {
  return implementation_ ? implementation_->capacity() : 0;
}

void DeviceMemory::commit(std::int64_t bytes) const {
  if (implementation_) implementation_->commit(bytes);
}

std::string Device::name() const {
  return implementation_ ? implementation_->name() : backend_name(backend_);
}

std::string Device::id() const {
  return implementation_ ? implementation_->id() : std::string();
}

Queue Device::make_queue(Priority priority) const {
  return implementation_ ? implementation_->make_queue(priority) : Queue(backend_);
}

DeviceMemory Device::reserve(std::int64_t capacity) const {
  if (implementation_) return implementation_->reserve(capacity);
  return DeviceMemory(std::make_shared<HostMemory>(capacity));
}

DeviceMemory Device::allocate(std::int64_t bytes) const {
  if (implementation_) return implementation_->allocate(bytes);
  return DeviceMemory(std::make_shared<HostMemory>(bytes));
}

DeviceMemory Device::allocate_host(std::int64_t bytes) const {
  if (implementation_) return implementation_->allocate_host(bytes);
  return DeviceMemory(std::make_shared<HostMemory>(bytes));
}

std::int64_t Device::available_bytes() const {
  return implementation_ ? implementation_->available_bytes() : available_memory_bytes();
}

std::int64_t Device::total_bytes() const {
  return implementation_ ? implementation_->total_bytes() : total_memory_bytes();
}

}  // namespace halograd
