#pragma once

#include "support/recording_device.hpp"

#include <cstddef>
#include <map>
#include <thread>
#include <vector>

namespace halograd::testing {

/// What a list of queue calls says about the order in which a device does the work: calls of one queue in order, of
/// different ones only as far as events and synchronize() say so (vector clocks; the list's own order proves nothing).
class CallOrder {
public:
  explicit CallOrder(const std::vector<QueueCall>& calls);

  /// Whether what call `first` asked for is done for sure before that of call `second` begins. Indices into the list.
  [[nodiscard]] bool before(std::size_t first, std::size_t second) const;
  /// Waits for events that nothing had recorded, which hold nothing up: always a mistake.
  [[nodiscard]] const std::vector<std::size_t>& empty_waits() const { return empty_waits_; }

private:
  using Clock = std::map<int, std::size_t>;  // of each queue, how many calls are done for sure

  struct Place {
    int queue = 0;
    std::size_t number = 0;  // among the queue's calls, from 1
    Clock done;              // before it begins
  };

  std::vector<Place> places_;
  std::vector<std::size_t> empty_waits_;
};

}  // namespace halograd::testing
