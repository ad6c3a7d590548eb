#include "halograd/comm/exchange_paths.hpp"
#include "halograd/core/error.hpp"

#include <cstring>

namespace halograd::comm {
namespace {

void copy_on_host(const std::byte* from, std::byte* to, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

class StagedExchange final : public Exchange::Implementation {
public:
  StagedExchange(const Link& link, const std::vector<ExchangePeer>& peers)
      : peers_(peers),
        queue_(link.queue),
        host_(link.communicator, peers),
        device_(peers, link.device),
        pinned_send_(link.device.allocate_host(device_.send_bytes())),
        pinned_receive_(link.device.allocate_host(device_.receive_bytes())) {}

  [[nodiscard]] std::size_t peers() const override { return peers_.size(); }
  [[nodiscard]] std::byte* send_buffer(std::size_t peer) override { return device_.send(peer); }
  [[nodiscard]] const std::byte* receive_buffer(std::size_t peer) const override { return device_.receive(peer); }
  void run() override;
  void release() override { holding_ = false; }

private:
  std::vector<ExchangePeer> peers_;
  Queue queue_;
  Exchange host_;
  MessageBuffers device_;
  DeviceMemory pinned_send_;
  DeviceMemory pinned_receive_;
  bool holding_ = false;
};

void StagedExchange::run() {
  if (holding_) throw UsageError("exchange: run() again before release()");
  holding_ = true;
  if (device_.send_bytes() + device_.receive_bytes() == 0) return;
  queue_.copy(device_.send().data(), pinned_send_.data(), device_.send_bytes());
  // Also for those that only receive: the copy of the run before may still read the pinned memory.
  queue_.synchronize();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    copy_on_host(pinned_send_.data() + device_.send_offset(i), host_.send_buffer(i), peers_[i].send_bytes);
  }
  host_.run();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    copy_on_host(host_.receive_buffer(i), pinned_receive_.data() + device_.receive_offset(i), peers_[i].receive_bytes);
  }
  host_.release();
  queue_.copy(pinned_receive_.data(), device_.receive().data(), device_.receive_bytes());
}

}  // namespace

std::unique_ptr<Exchange::Implementation> make_staged_exchange(const Link& link,
                                                               const std::vector<ExchangePeer>& peers) {
  return std::make_unique<StagedExchange>(link, peers);
}

}  // namespace halograd::comm
