#pragma once

#include "halograd/comm/exchange.hpp"
#include "halograd/kernels/backend.hpp"
#include "halograd/kernels/region_copy.hpp"
#include "halograd/plan/exchange_plan.hpp"

#include <cstddef>
#include <vector>

namespace halograd {

/// An ExchangePlan bound to buffers and peers: packs, sends, receives and unpacks, phase after phase.
class HaloExchange {
public:
  /// Collective over the spatial group. `address(buffer)` gives where each buffer lies.
  HaloExchange(Backend backend, const Communicator& group, const ExchangePlan& plan,
               const std::function<float*(BufferId)>& address);

  /// Collective; runs on a lane.
  void run();

private:
  struct Copy {
    RegionCopy region;
    float* buffer = nullptr;
    bool add = false;
    std::size_t peer = 0;
  };
  struct Phase {
    std::vector<Copy> packs;
    std::vector<Copy> unpacks;
    Exchange exchange;
  };

  Backend backend_;
  std::vector<Phase> phases_;
};

}  // namespace halograd
