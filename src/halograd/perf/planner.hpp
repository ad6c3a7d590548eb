#pragma once

#include "halograd/nn/network.hpp"
#include "halograd/perf/cost_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace halograd {

/// What the planner is asked: a network, a global mini-batch, and how it is compiled.
struct PlanRequest {
  std::int64_t batch = 1;
  StatisticsScope scope = StatisticsScope::global;
  bool direct_convolutions = false;
  PriceOptions price;
};

/// A grid, compiled and priced: by the rank that takes longest of those looked at (first, middle and last of a group).
struct GridPrice {
  ProcessGrid grid;
  PlanCost cost;
  bool fits = true;
  std::string
      refused;  ///< why the network can't be split so, or what the machine lacks to price it: then only `grid` holds
};

/// Every grid of `ranks` ranks (all of D × H × W that divide them), the fastest that fits first, then what does not
/// fit, then what can't be. A pure function. Throws UsageError where the machine has no setting for so many ranks.
std::vector<GridPrice> price_grids(const Network& network, const Machine& machine, std::int64_t ranks,
                                   const PlanRequest& request);

/// One grid.
GridPrice price_grid(const Network& network, const Machine& machine, const ProcessGrid& grid,
                     const PlanRequest& request);

}  // namespace halograd
