#pragma once

#include "halograd/comm/exchange.hpp"
#include "halograd/kernels/region_copy.hpp"
#include "halograd/plan/exchange_plan.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace halograd {

/// An ExchangePlan bound to its peers: packs, sends, receives and unpacks, phase after phase.
class HaloExchange {
public:
  /// Collective over the spatial group.
  HaloExchange(const Link& group, const ExchangePlan& plan);

  /// Collective; runs on a lane, in the order of the link's queue. `addresses`: where each buffer of the plan lies, by
  /// id.
  void run(std::span<std::byte* const> addresses);
  /// Makes ready for another run after one that threw, on links whose exchanges only list work.
  void release();

private:
  struct Copy {
    RegionCopy region;
    Tile tile;
    bool add = false;
    std::size_t peer = 0;
  };
  struct Phase {
    std::vector<Copy> packs;
    std::vector<Copy> unpacks;
    Exchange exchange;
  };

  Queue queue_;
  std::vector<Phase> phases_;
};

}  // namespace halograd
