#include "support/call_order.hpp"

#include <algorithm>

namespace halograd::testing {
namespace {

template <typename Clock>
void join(Clock& clock, const Clock& other) {
  for (const auto& [queue, number] : other) clock[queue] = std::max(clock[queue], number);
}

}  // namespace

CallOrder::CallOrder(const std::vector<QueueCall>& calls) {
  std::map<int, Clock> queues;               // done before a queue's next call begins
  std::map<std::thread::id, Clock> threads;  // done before a thread's next call
  std::map<int, Clock> events;
  std::map<int, std::size_t> listed;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const QueueCall& call = calls[i];
    Clock& queue = queues[call.queue];
    join(queue, threads[call.thread]);
    if (call.kind == CallKind::wait) {
      if (const auto event = events.find(call.event); event != events.end()) {
        join(queue, event->second);
      } else {
        empty_waits_.push_back(i);
      }
    }
    places_.push_back({call.queue, ++listed[call.queue], queue});
    queue[call.queue] = listed[call.queue];
    if (call.kind == CallKind::record) events[call.event] = queue;
    if (call.kind == CallKind::synchronize) join(threads[call.thread], queue);
  }
}

bool CallOrder::before(std::size_t first, std::size_t second) const {
  const Place& earlier = places_.at(first);
  const auto done = places_.at(second).done.find(earlier.queue);
  return done != places_.at(second).done.end() && done->second >= earlier.number;
}

}  // namespace halograd::testing
