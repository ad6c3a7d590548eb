#pragma once

#include "halograd/nn/network.hpp"
#include "halograd/perf/cost_model.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace halograd {

/// What the planner is asked: a network, a global mini-batch, and how it is compiled.
struct PlanRequest {
  std::int64_t batch = 1;
  StatisticsScope scope = StatisticsScope::global;
  Precision precision = Precision::f32;
  bool direct_convolutions = false;
  PriceOptions price;
};

/// The plan of one rank of a grid, for the kernels of `backend`.
Plan plan_for(const Network& network, const ProcessGrid& grid, std::int64_t rank, const PlanRequest& request,
              Backend backend);

/// Of a group's ranks those that differ most: at one corner, in the middle, at the other corner.
std::set<std::int64_t> telling_ranks(const ProcessGrid& grid);

/// Every D × H × W whose product divides `ranks`, the rest being data-parallel groups.
std::vector<ProcessGrid> all_grids(std::int64_t ranks);

/// A grid, compiled and priced: by that of its telling ranks which takes longest.
struct GridPrice {
  ProcessGrid grid;
  PlanCost cost;
  bool fits = true;
  /// Why the network can't be split so, or what the machine lacks to price it: then only `grid` holds.
  std::string refused;
};

/// Those of `grids`, all of as many ranks, that leave no group without samples, the fastest that fits first, then what
/// does not fit, then what can't be. A pure function. Throws UsageError where the machine has no setting for so many
/// ranks.
std::vector<GridPrice> price_grids(const Network& network, const Machine& machine,
                                   const std::vector<ProcessGrid>& grids, const PlanRequest& request);

/// The grid that takes the least memory of the least number of ranks, doubled from `ranks` on, that has one which fits
/// by memory; none where more ranks don't make it smaller. A pure function.
std::optional<ProcessGrid> nearest_that_fits(const Network& network, const Machine& machine, std::int64_t ranks,
                                             const PlanRequest& request);

/// One grid.
GridPrice price_grid(const Network& network, const Machine& machine, const ProcessGrid& grid,
                     const PlanRequest& request);

}  // namespace halograd
