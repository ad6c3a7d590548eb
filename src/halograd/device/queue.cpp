#include "halograd/device/queue.hpp"

#include "halograd/core/error.hpp"

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

bool Queue::can_record() const {
  return implementation_ && implementation_->can_record();
}

void Queue::begin_recording() const {
  if (!can_record()) throw UsageError("a queue of backend {} does not record work", backend_name(backend_));
  implementation_->begin_recording();
}

Graph Queue::end_recording() const {
  if (!can_record()) throw UsageError("a queue of backend {} does not record work", backend_name(backend_));
  return implementation_->end_recording();
}

void Queue::launch(const Graph& graph) const {
  if (!implementation_ || !graph) throw UsageError("there is no recorded work to launch");
  implementation_->launch(graph);
}

}  // namespace halograd
