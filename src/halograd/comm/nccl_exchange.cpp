#include "halograd/comm/exchange_paths.hpp"
#include "halograd/comm/exchange_table.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <numeric>

namespace halograd::comm {
namespace {

class NcclExchange final : public Exchange::Implementation {
public:
  NcclExchange(const Link& link, const std::vector<ExchangePeer>& peers, const std::vector<std::size_t>& partners);

  [[nodiscard]] std::size_t peers() const override { return buffers_.size(); }
  [[nodiscard]] std::byte* send_buffer(std::size_t peer) override { return buffers_.send(peer); }
  [[nodiscard]] const std::byte* receive_buffer(std::size_t peer) const override { return receive_from_.at(peer); }
  void run() override;
  void release() override { holding_ = false; }

private:
  Queue queue_;
  std::shared_ptr<NcclCommunicator> nccl_;
  MessageBuffers buffers_;
  std::vector<const std::byte*> receive_from_;
  std::vector<DeviceMessage> sends_;
  std::vector<DeviceMessage> receives_;
  bool holding_ = false;
};

std::vector<std::size_t> partners_of(const Communicator& communicator, const std::vector<ExchangePeer>& peers) {
  agree(communicator, [&] { check_peers(communicator, peers); });
  RankRecord mine;
  for (const auto& peer : peers) {
    mine.messages.push_back({.peer = peer.rank, .send_bytes = peer.send_bytes, .receive_bytes = peer.receive_bytes});
  }
  const auto records = gather_records(communicator, mine);
  std::vector<std::size_t> partners;
  agree(communicator, [&] { partners = pair_messages(records, communicator.rank()); });
  return partners;
}

NcclExchange::NcclExchange(const Link& link, const std::vector<ExchangePeer>& peers,
                           const std::vector<std::size_t>& partners)
    : queue_(link.queue), nccl_(link.nccl), buffers_(peers, link.device) {
  // Sends go in list order, so receives in the order of the lists that they are sent from.
  std::vector<std::size_t> order(peers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return partners[i]; });
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const bool own = peers[i].rank == link.communicator.rank();
    // What a rank sends itself is read where it was written.
    receive_from_.push_back(own ? buffers_.send(partners[i]) : buffers_.receive(i));
    if (!own && peers[i].send_bytes > 0) sends_.push_back({peers[i].rank, buffers_.send(i), peers[i].send_bytes});
  }
  for (const std::size_t i : order) {
    const bool own = peers[i].rank == link.communicator.rank();
    if (!own && peers[i].receive_bytes > 0) {
      receives_.push_back({peers[i].rank, buffers_.receive(i), peers[i].receive_bytes});
    }
  }
}

void NcclExchange::run() {
  if (holding_) throw UsageError("exchange: run() again before release()");
  holding_ = true;
  if (!sends_.empty() || !receives_.empty()) nccl_->exchange(sends_, receives_, queue_);
}

}  // namespace

std::unique_ptr<Exchange::Implementation> make_nccl_exchange(const Link& link, const std::vector<ExchangePeer>& peers) {
  return std::make_unique<NcclExchange>(link, peers, partners_of(link.communicator, peers));
}

}  // namespace halograd::comm
