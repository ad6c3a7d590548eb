#include "halograd/device/queue.hpp"

#include <cstring>

namespace halograd {

void Queue::copy(const void* from, void* to, std::int64_t bytes) const {
  if (bytes == 0) return;
  if (implementation_) return implementation_->copy(from, to, bytes);
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void Queue::clear(void* to, std::int64_t bytes) const {
  if (bytes == 0) return;
  if (implementation_) return implementation_->clear(to, bytes);
  std::memset(to, 0, static_cast<std::size_t>(bytes));
}

Event Queue::make_event() const {
  return implementation_ ? implementation_->make_event() : Event();
}

void Queue::record(const Event& event) const {
  if (implementation_) implementation_->record(event);
}

void Queue::wait(const Event& event) const {
  if (implementation_) implementation_->wait(event);
}

void Queue::synchronize() const {
  if (implementation_) implementation_->synchronize();
}

void Queue::label(std::string_view what) const {
  if (implementation_) implementation_->label(what);
}

}  // namespace halograd
