#include "halograd/comm/exchange.hpp"

#include "halograd/comm/exchange_paths.hpp"

namespace halograd {
namespace {

std::unique_ptr<Exchange::Implementation> make(const Link& link, const std::vector<ExchangePeer>& peers) {
  switch (link.transport) {
    case Transport::staged: return comm::make_staged_exchange(link, peers);
    case Transport::nccl: return comm::make_nccl_exchange(link, peers);
    case Transport::host: break;
  }
  return comm::make_host_exchange(link.communicator, peers);
}

}  // namespace

Exchange::Exchange(const Link& link, std::vector<ExchangePeer> peers) : implementation_(make(link, peers)) {}
Exchange::~Exchange() = default;
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;

std::size_t Exchange::peers() const {
  return implementation_->peers();
}

std::byte* Exchange::send_buffer(std::size_t peer) {
  return implementation_->send_buffer(peer);
}

void Exchange::run() {
  implementation_->run();
}

const std::byte* Exchange::receive_buffer(std::size_t peer) const {
  return implementation_->receive_buffer(peer);
}

void Exchange::release() {
  implementation_->release();
}

}  // namespace halograd
