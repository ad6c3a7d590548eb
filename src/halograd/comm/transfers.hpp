#pragma once

#include "halograd/comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace halograd {

/// Messages of any size between ranks, posted one by one and waited for together: for traffic that is another one each
/// time (an Exchange is for what stays the same). Large messages travel in pieces. Between two ranks messages arrive in
/// the order in which both sides post them, and both must give the same bytes. Used from one thread.
class Transfers {
public:
  /// Collective over the communicator.
  explicit Transfers(const Communicator& communicator);
  ~Transfers();
  Transfers(Transfers&&) noexcept;
  Transfers& operator=(Transfers&&) noexcept;

  /// Posts `bytes` for `peer`, which is another rank; `data` stays untouched until wait() returns. Throws UsageError
  /// for this rank itself, and so always in a process without MPI.
  void send(int peer, const std::byte* data, std::int64_t bytes);
  void receive(int peer, std::byte* data, std::int64_t bytes);
  /// Returns when everything posted has been sent and received; sleeps rather than hold a core. Throws ResourceError
  /// where a message fails or the calling thread is cancelled (comm/waiting.hpp). Then MPI may still read and write the
  /// buffers of what is outstanding, even when this object is gone: whoever owns them must not give them back (or wait
  /// again, where the messages may yet come).
  void wait();
  /// Whether anything posted has not been waited for with success: while so, its buffers must stay.
  [[nodiscard]] bool pending() const;

  [[nodiscard]] const Communicator& communicator() const;
  /// Sent by this rank so far.
  [[nodiscard]] std::int64_t bytes_sent() const;

private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Takes a buffer from its owner for good, since MPI may still write to it.
template <typename Buffer>
void never_free(Buffer&& buffer) noexcept {
  static_cast<void>(new (std::nothrow) std::remove_cvref_t<Buffer>(std::forward<Buffer>(buffer)));
}

}  // namespace halograd
