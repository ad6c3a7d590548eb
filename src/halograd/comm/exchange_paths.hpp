#pragma once

#include "halograd/comm/exchange.hpp"

#include <memory>
#include <span>
#include <vector>

namespace halograd {

/// What an Exchange does over one kind of transport.
struct Exchange::Implementation {
  virtual ~Implementation() = default;
  [[nodiscard]] virtual std::size_t peers() const = 0;
  [[nodiscard]] virtual std::byte* send_buffer(std::size_t peer) = 0;
  virtual void run() = 0;
  [[nodiscard]] virtual const std::byte* receive_buffer(std::size_t peer) const = 0;
  virtual void release() = 0;
};

namespace comm {

/// Between the processor's memories, through shared memory or MPI.
std::unique_ptr<Exchange::Implementation> make_host_exchange(const Communicator& communicator,
                                                             const std::vector<ExchangePeer>& peers);
/// From and to a device's memory through pinned host memory and a host exchange.
std::unique_ptr<Exchange::Implementation> make_staged_exchange(const Link& link,
                                                               const std::vector<ExchangePeer>& peers);
/// From GPU to GPU.
std::unique_ptr<Exchange::Implementation> make_nccl_exchange(const Link& link, const std::vector<ExchangePeer>& peers);

/// Throws UsageError where a peer is no rank of the communicator or a size is negative.
void check_peers(const Communicator& communicator, std::span<const ExchangePeer> peers);

/// The messages of an exchange in memory of a device: one allocation for all that is sent and one for all that is
/// received, so that each travels to or from the host in one copy.
class MessageBuffers {
public:
  MessageBuffers(const std::vector<ExchangePeer>& peers, const Device& device);

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] std::byte* send(std::size_t peer) const { return send_.data() + places_.at(peer).send; }
  [[nodiscard]] std::byte* receive(std::size_t peer) const { return receive_.data() + places_.at(peer).receive; }
  [[nodiscard]] const DeviceMemory& send() const { return send_; }
  [[nodiscard]] const DeviceMemory& receive() const { return receive_; }
  [[nodiscard]] std::int64_t send_offset(std::size_t peer) const { return places_.at(peer).send; }
  [[nodiscard]] std::int64_t receive_offset(std::size_t peer) const { return places_.at(peer).receive; }
  [[nodiscard]] std::int64_t send_bytes() const { return end_.send; }
  [[nodiscard]] std::int64_t receive_bytes() const { return end_.receive; }

private:
  struct Place {
    std::int64_t send = 0;
    std::int64_t receive = 0;
  };

  std::vector<Place> places_;
  Place end_;
  DeviceMemory send_;
  DeviceMemory receive_;
};

}  // namespace comm
}  // namespace halograd
