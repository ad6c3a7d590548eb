#pragma once

#include "halograd/comm/link.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace halograd {

/// A message between this rank and one other, the same every time: what goes there and what comes back.
struct ExchangePeer {
  int rank = 0;
  std::int64_t send_bytes = 0;
  std::int64_t receive_bytes = 0;
};

/// A standing exchange of fixed messages with a few peers (a halo in one dimension). Made once, run every step without
/// allocating. Node-local peers read each other's send buffers in shared memory; others get MPI messages in pieces.
/// Use: fill each send_buffer(i), call run(), read each receive_buffer(i), call release() before the next filling.
/// Over a link of a GPU the buffers are in its memory; fill and read them by work on the link's queue.
class Exchange {
public:
  /// Collective over the link's communicator (ranks without peers pass an empty list). Peers must agree on the bytes
  /// between them. A peer may appear twice (both neighbours the same rank): its messages then pair up in list order
  /// reversed, the first of one side with the last of the other.
  Exchange(const Link& link, std::vector<ExchangePeer> peers);
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  [[nodiscard]] std::size_t peers() const;
  /// Waits until the peer has released the message before, then hands out the buffer to fill.
  [[nodiscard]] std::byte* send_buffer(std::size_t peer);
  /// Sends all, returns when all is received. Blocks without burning a core that others need. On a GPU it returns when
  /// that is listed (NCCL), or waits for what the queue has so far and lists the last copies (staged).
  void run();
  [[nodiscard]] const std::byte* receive_buffer(std::size_t peer) const;
  void release();

  struct Implementation;

private:
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace halograd
