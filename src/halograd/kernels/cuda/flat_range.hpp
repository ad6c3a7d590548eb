#pragma once

#include "halograd/kernels/cuda/packet.hpp"

#include <cstdint>
#include <initializer_list>

namespace halograd::cuda {

/// One of the buffers that an elementwise launch walks over.
struct Operand {
  const void* address = nullptr;
  std::int64_t size = 0;  ///< bytes of a number
};

/// A flat range of numbers as items of a launch: first the packets of `width` numbers, then the numbers before and
/// behind them, one by one.
template <int width>
class FlatRange {
public:
  constexpr FlatRange(std::int64_t count, std::int64_t head, std::int64_t packets)
      : count_(count), head_(head), packets_(packets) {}
  /// Packets begin where all operands are aligned; where they never are at once there are none.
  FlatRange(std::int64_t count, std::initializer_list<Operand> operands) : count_(count) {
    for (std::int64_t head = 0; head < width && head <= count; ++head) {
      bool all = true;
      for (const Operand& operand : operands) {
        all = all && aligned(static_cast<const char*>(operand.address) + head * operand.size, width * operand.size);
      }
      if (!all) continue;
      head_ = head;
      packets_ = (count - head) / width;
      break;
    }
  }

  [[nodiscard]] constexpr std::int64_t items() const { return packets_ + count_ - packets_ * width; }
  [[nodiscard]] constexpr bool is_packet(std::int64_t item) const { return item < packets_; }
  /// The (first) number of an item.
  [[nodiscard]] constexpr std::int64_t element(std::int64_t item) const {
    if (is_packet(item)) return head_ + item * width;
    const std::int64_t single = item - packets_;
    return single < head_ ? single : single + packets_ * width;
  }

private:
  std::int64_t count_ = 0;
  std::int64_t head_ = 0;
  std::int64_t packets_ = 0;
};

}  // namespace halograd::cuda
