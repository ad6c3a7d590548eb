#include "halograd/comm/link.hpp"

#include "halograd/comm/nccl_communicator.hpp"

namespace halograd {

Link::Link(const Communicator& ranks, const Device& place, const Queue& order, Transport how,
           const NcclFactory& make_nccl)
    : communicator(ranks), device(place), queue(order), transport(order.works_at_once() ? Transport::host : how) {
  if (transport == Transport::nccl && communicator.size() > 1) nccl = make_nccl(communicator, device);
}

bool Link::returns_when_listed() const {
  return transport == Transport::nccl || communicator.size() == 1;
}

}  // namespace halograd
