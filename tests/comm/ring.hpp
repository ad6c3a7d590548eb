#pragma once

#include "halograd/comm/exchange.hpp"

#include <cstdint>
#include <vector>

namespace halograd::testing {

/// Byte `i` of the message from `from` to `to` in turn `turn`; `side` tells two messages of one pair apart.
inline std::uint8_t content(int from, int side, int turn, std::int64_t i) {
  return static_cast<std::uint8_t>(31 * from + 101 * side + 7 * turn + i + (i >> 8));
}

inline void fill(std::byte* buffer, std::int64_t bytes, int from, int side, int turn) {
  for (std::int64_t i = 0; i < bytes; ++i) buffer[i] = std::byte{content(from, side, turn, i)};
}

inline std::int64_t wrong_bytes(const std::byte* buffer, std::int64_t bytes, int from, int side, int turn) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < bytes; ++i) wrong += buffer[i] != std::byte{content(from, side, turn, i)};
  return wrong;
}

/// List entry 0 is the neighbour below, 1 the one above; with two ranks both are the same, with one it is itself.
struct Ring {
  Ring(const Link& over, std::int64_t scale)
      : link(over), rank(over.communicator.rank()), ranks(over.communicator.size()), unit(scale) {}

  [[nodiscard]] int below() const { return (rank + ranks - 1) % ranks; }
  [[nodiscard]] int above() const { return (rank + 1) % ranks; }
  /// Uneven: what a rank sends depends on rank and side.
  [[nodiscard]] std::int64_t bytes(int from, int side) const { return unit * (from + 1) + side * 3; }
  [[nodiscard]] std::vector<ExchangePeer> peers() const {
    return {{below(), bytes(rank, 0), bytes(below(), 1)}, {above(), bytes(rank, 1), bytes(above(), 0)}};
  }
  /// One use of an exchange of peers(), by work on the link's queue. Returns how many bytes arrived wrong.
  [[nodiscard]] std::int64_t turn(Exchange& exchange, int number) const {
    for (int side : {0, 1}) {
      std::vector<std::byte> message(static_cast<std::size_t>(bytes(rank, side)));
      fill(message.data(), bytes(rank, side), rank, side, number);
      link.queue.copy(message.data(), exchange.send_buffer(static_cast<std::size_t>(side)), bytes(rank, side));
      link.queue.synchronize();
    }
    exchange.run();
    const std::int64_t wrong = wrong_in(exchange, 0, below(), 1, number) + wrong_in(exchange, 1, above(), 0, number);
    exchange.release();
    return wrong;
  }
  [[nodiscard]] std::int64_t wrong_in(const Exchange& exchange, std::size_t peer, int from, int side,
                                      int number) const {
    std::vector<std::byte> message(static_cast<std::size_t>(bytes(from, side)));
    link.queue.copy(exchange.receive_buffer(peer), message.data(), bytes(from, side));
    link.queue.synchronize();
    return wrong_bytes(message.data(), bytes(from, side), from, side, number);
  }

  Link link;
  int rank;
  int ranks;
  std::int64_t unit;
};

}  // namespace halograd::testing
