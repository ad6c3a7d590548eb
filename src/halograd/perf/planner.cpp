#include "halograd/perf/planner.hpp"

#include "halograd/core/error.hpp"
#include "halograd/plan/compiler.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace halograd {
namespace {

/// Of a group's ranks those that differ most: at a corner, in the middle, at the other corner.
std::set<std::int64_t> ranks_to_look_at(const ProcessGrid& grid) {
  const Extent parts = grid.spatial();
  const Index middle{parts.d / 2, parts.h / 2, parts.w / 2};
  return {0, grid.rank({.group = 0, .place = middle}), grid.spatial_size() - 1};
}

bool fits(const PlanCost& cost, const Machine& machine, const MachineSetting& setting) {
  return cost.memory_bytes * setting.ranks_on_node <= machine.node_memory_bytes;
}

}  // namespace

GridPrice price_grid(const Network& network, const Machine& machine, const ProcessGrid& grid,
                     const PlanRequest& request) {
  GridPrice price{.grid = grid};
  for (const std::int64_t rank : ranks_to_look_at(grid)) {
    const Plan plan = compile(network, {.grid = grid,
                                        .rank = rank,
                                        .batch = request.batch,
                                        .scope = request.scope,
                                        .direct_convolutions = request.direct_convolutions,
                                        .input_partition = {},
                                        .traits = {}});
    PlanCost cost = halograd::price(plan, machine, request.price);
    const std::int64_t memory = std::max(cost.memory_bytes, price.cost.memory_bytes);
    if (cost.step.seconds() >= price.cost.step.seconds()) price.cost = std::move(cost);
    price.cost.memory_bytes = memory;
  }
  price.fits = fits(price.cost, machine, machine.setting_for(grid.size(), request.price.threads));
  return price;
}

std::vector<GridPrice> price_grids(const Network& network, const Machine& machine, std::int64_t ranks,
                                   const PlanRequest& request) {
  static_cast<void>(machine.setting_for(ranks, request.price.threads));
  std::vector<GridPrice> prices;
  for (std::int64_t depth = 1; depth <= ranks; ++depth) {
    if (ranks % depth != 0) continue;
    for (std::int64_t height = 1; height <= ranks / depth; ++height) {
      if (ranks / depth % height != 0) continue;
      for (std::int64_t width = 1; width <= ranks / depth / height; ++width) {
        if (ranks / depth / height % width != 0) continue;
        const ProcessGrid grid{ranks / depth / height / width, depth, height, width};
        if (grid.data > request.batch) continue;  // groups without samples
        try {
          prices.push_back(price_grid(network, machine, grid, request));
        } catch (const UsageError& error) {
          prices.push_back({.grid = grid, .fits = false, .refused = error.what()});
        }
      }
    }
  }
  std::ranges::stable_sort(prices, {}, [](const GridPrice& price) {
    return std::tuple(!price.refused.empty(), !price.fits, price.cost.step.seconds());
  });
  return prices;
}

}  // namespace halograd
