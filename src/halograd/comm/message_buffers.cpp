#include "halograd/comm/exchange_paths.hpp"
#include "halograd/core/error.hpp"

namespace halograd::comm {
namespace {

// What kernels with wide accesses and NCCL like best.
constexpr std::int64_t device_alignment = 256;

constexpr std::int64_t round_up(std::int64_t bytes) {
  return (bytes + device_alignment - 1) / device_alignment * device_alignment;
}

}  // namespace

void check_peers(const Communicator& communicator, std::span<const ExchangePeer> peers) {
  for (const auto& peer : peers) {
    if (peer.rank < 0 || peer.rank >= communicator.size()) {
      throw UsageError("exchange: peer {} is none of the {} ranks", peer.rank, communicator.size());
    }
    if (peer.send_bytes < 0 || peer.receive_bytes < 0) {
      throw UsageError("exchange: a message with rank {} has a negative size", peer.rank);
    }
  }
}

MessageBuffers::MessageBuffers(const std::vector<ExchangePeer>& peers, const Device& device) {
  for (const auto& peer : peers) {
    places_.push_back(end_);
    end_.send += round_up(peer.send_bytes);
    end_.receive += round_up(peer.receive_bytes);
  }
  send_ = device.allocate(end_.send);
  receive_ = device.allocate(end_.receive);
}

}  // namespace halograd::comm
