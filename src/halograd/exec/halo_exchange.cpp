#include "halograd/exec/halo_exchange.hpp"

namespace halograd {

HaloExchange::HaloExchange(const Link& group, const ExchangePlan& plan) : queue_(group.queue) {
  for (const std::vector<Transfer>& transfers : plan.phases) {
    std::vector<ExchangePeer> peers;
    std::vector<Copy> packs;
    std::vector<Copy> unpacks;
    for (const Transfer& transfer : transfers) {
      const std::size_t peer = peers.size();
      for (const Piece& piece : transfer.send) {
        packs.push_back({{plan.samples,
                          plan.channels,
                          piece.tile.layout(),
                          {transfer.send_box, plan.channels},
                          piece.region,
                          plan.type},
                         piece.tile,
                         false,
                         peer});
      }
      for (const Piece& piece : transfer.receive) {
        unpacks.push_back({{plan.samples,
                            plan.channels,
                            {transfer.receive_box, plan.channels},
                            piece.tile.layout(),
                            piece.region,
                            plan.type},
                           piece.tile,
                           piece.add,
                           peer});
      }
      peers.push_back({transfer.peer, plan.message_bytes(transfer.send_box), plan.message_bytes(transfer.receive_box)});
    }
    phases_.push_back({std::move(packs), std::move(unpacks), Exchange(group, std::move(peers))});
  }
}

namespace {

std::byte* address(std::span<std::byte* const> addresses, const Tile& tile) {
  return addresses[static_cast<std::size_t>(tile.buffer)] + tile.offset_bytes();
}

}  // namespace

void HaloExchange::run(std::span<std::byte* const> addresses) {
  for (Phase& phase : phases_) {
    for (const Copy& copy : phase.packs) {
      copy_region(queue_, copy.region, address(addresses, copy.tile), phase.exchange.send_buffer(copy.peer));
    }
    phase.exchange.run();
    for (const Copy& copy : phase.unpacks) {
      const std::byte* const message = phase.exchange.receive_buffer(copy.peer);
      (copy.add ? add_region : copy_region)(queue_, copy.region, message, address(addresses, copy.tile));
    }
    phase.exchange.release();
  }
}

void HaloExchange::release() {
  for (Phase& phase : phases_) phase.exchange.release();
}

}  // namespace halograd
