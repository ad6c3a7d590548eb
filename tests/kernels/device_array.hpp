#pragma once

#include "halograd/core/bf16.hpp"
#include "halograd/device/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace halograd::test {

/// Numbers in a device's memory, the host's too. All around them lie bytes that must stay as they are; read as floats
/// they are NaN.
class DeviceArray {
public:
  /// `shift`: of so many numbers the first one lies behind a multiple of 256 bytes.
  template <typename T>
  DeviceArray(const Device& device, const Queue& queue, const std::vector<T>& values, std::int64_t shift = 0)
      : queue_(queue), begin_(guard + static_cast<std::size_t>(shift) * sizeof(T)), bytes_(values.size() * sizeof(T)) {
    static_assert(std::is_trivially_copyable_v<T>);
    at_first_.assign(begin_ + bytes_ + guard, std::byte{0xFF});
    memory_ = device.allocate(static_cast<std::int64_t>(at_first_.size()));
    assign(values);
  }

  template <typename T = void>
  [[nodiscard]] T* data() const {
    return static_cast<T*>(static_cast<void*>(memory_.data() + begin_));
  }

  /// As many other numbers, there at first from now on.
  template <typename T>
  void assign(const std::vector<T>& values) {
    ASSERT_EQ(values.size() * sizeof(T), bytes_);
    if (bytes_ > 0) std::memcpy(at_first_.data() + begin_, values.data(), bytes_);
    reset();
  }

  /// Brings back what was there at first.
  void reset() const {
    queue_.copy(at_first_.data(), memory_.data(), static_cast<std::int64_t>(at_first_.size()));
    queue_.synchronize();
  }

  /// What is there when all that was listed is done, what lies around the numbers included.
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> now(at_first_.size());
    queue_.copy(memory_.data(), now.data(), static_cast<std::int64_t>(now.size()));
    queue_.synchronize();
    return now;
  }

  /// The numbers; sees too that nothing was written around them.
  template <typename T>
  [[nodiscard]] std::vector<T> values() const {
    const std::vector<std::byte> now = bytes();
    const auto end = static_cast<std::ptrdiff_t>(begin_ + bytes_);
    const auto kept = [](std::byte byte) { return byte == std::byte{0xFF}; };
    EXPECT_TRUE(std::all_of(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(begin_), kept)) << "written before";
    EXPECT_TRUE(std::all_of(now.begin() + end, now.end(), kept)) << "written behind";
    std::vector<T> result(bytes_ / sizeof(T));
    if (bytes_ > 0) std::memcpy(static_cast<void*>(result.data()), now.data() + begin_, bytes_);
    return result;
  }

private:
  static constexpr std::size_t guard = 256;

  Queue queue_;
  std::size_t begin_;
  std::size_t bytes_;
  std::vector<std::byte> at_first_;
  DeviceMemory memory_;
};

/// Lists work, sees that it gives the same bits when it is done again and (on a GPU) when it is launched as a
/// recording, during which the device forbids to allocate and to wait. `written`: every array that the work writes;
/// each time holds what was there at first when the work begins, and the results when this returns.
template <typename List>
void run_repeatedly(const Queue& queue, const List& list, const std::vector<const DeviceArray*>& written) {
  const auto results_of = [&](const auto& work) {
    for (const DeviceArray* array : written) array->reset();
    work();
    queue.synchronize();
    std::vector<std::vector<std::byte>> results;
    for (const DeviceArray* array : written) results.push_back(array->bytes());
    return results;
  };
  const auto first = results_of(list);
  EXPECT_TRUE(results_of(list) == first) << "other bits the second time";
  if (!queue.can_record()) return;
  queue.begin_recording();
  list();
  const Graph graph = queue.end_recording();
  ASSERT_TRUE(graph) << "nothing was recorded";
  EXPECT_TRUE(results_of([&] { queue.launch(graph); }) == first) << "other bits from a recording";
}

}  // namespace halograd::test
