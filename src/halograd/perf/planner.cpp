#include "halograd/perf/planner.hpp"

#include "halograd/core/error.hpp"
#include "halograd/plan/compiler.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace halograd {
namespace {

constexpr std::int64_t most_ranks = std::int64_t{1} << 20;
constexpr double worthwhile = 0.99;  // of the memory: twice as many ranks must take it below this

struct GridMemory {
  ProcessGrid grid;
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
};

std::int64_t memory_of_grid(const Network& network, const Machine& machine, const ProcessGrid& grid,
                            const PlanRequest& request) {
  std::int64_t most = 0;
  for (const std::int64_t rank : telling_ranks(grid)) {
    most = std::max(most, memory_of(plan_for(network, grid, rank, request, machine.backend), machine, request.price));
  }
  return most;
}

/// Of so many ranks; none where the network can't be split so.
std::optional<GridMemory> least_memory(const Network& network, const Machine& machine, std::int64_t ranks,
                                       const PlanRequest& request) {
  std::optional<GridMemory> least;
  for (const ProcessGrid& grid : all_grids(ranks)) {
    if (grid.data > request.batch) continue;
    try {
      const std::int64_t bytes = memory_of_grid(network, machine, grid, request);
      if (!least || bytes < least->bytes) least = {grid, bytes};
    } catch (const UsageError&) {
      continue;  // it can't be split so
    }
  }
  return least;
}

}  // namespace

Plan plan_for(const Network& network, const ProcessGrid& grid, std::int64_t rank, const PlanRequest& request,
              Backend backend) {
  return compile(network, {.grid = grid,
                           .rank = rank,
                           .batch = request.batch,
                           .scope = request.scope,
                           .precision = request.precision,
                           .direct_convolutions = request.direct_convolutions,
                           .input_partition = {},
                           .traits = kernel_traits(backend)});
}

std::set<std::int64_t> telling_ranks(const ProcessGrid& grid) {
  const Extent parts = grid.spatial();
  const Index middle{parts.d / 2, parts.h / 2, parts.w / 2};
  return {0, grid.rank({.group = 0, .place = middle}), grid.spatial_size() - 1};
}

std::vector<ProcessGrid> all_grids(std::int64_t ranks) {
  std::vector<ProcessGrid> grids;
  for (std::int64_t depth = 1; depth <= ranks; ++depth) {
    if (ranks % depth != 0) continue;
    for (std::int64_t height = 1; height <= ranks / depth; ++height) {
      if (ranks / depth % height != 0) continue;
      for (std::int64_t width = 1; width <= ranks / depth / height; ++width) {
        if (ranks / depth / height % width != 0) continue;
        grids.push_back({ranks / depth / height / width, depth, height, width});
      }
    }
  }
  return grids;
}

GridPrice price_grid(const Network& network, const Machine& machine, const ProcessGrid& grid,
                     const PlanRequest& request) {
  GridPrice result{.grid = grid};
  for (const std::int64_t rank : telling_ranks(grid)) {
    PlanCost cost = price(plan_for(network, grid, rank, request, machine.backend), machine, request.price);
    const std::int64_t memory = std::max(cost.memory_bytes, result.cost.memory_bytes);
    if (cost.step.seconds() >= result.cost.step.seconds()) result.cost = std::move(cost);
    result.cost.memory_bytes = memory;
  }
  const MachineSetting& setting = machine.setting_for(grid.size(), request.price.setting);
  result.fits = result.cost.memory_bytes <= machine.memory_of_rank(setting);
  return result;
}

std::vector<GridPrice> price_grids(const Network& network, const Machine& machine,
                                   const std::vector<ProcessGrid>& grids, const PlanRequest& request) {
  for (const ProcessGrid& grid : grids) {  // else none could be priced
    static_cast<void>(machine.setting_for(grid.size(), request.price.setting));
  }
  std::vector<GridPrice> prices;
  for (const ProcessGrid& grid : grids) {
    if (grid.data > request.batch) continue;  // groups without samples
    try {
      prices.push_back(price_grid(network, machine, grid, request));
    } catch (const UsageError& error) {
      prices.push_back({.grid = grid, .cost = {}, .fits = false, .refused = error.what()});
    }
  }
  std::ranges::stable_sort(prices, {}, [](const GridPrice& price) {
    return std::tuple(!price.refused.empty(), !price.fits, price.cost.step.seconds());
  });
  return prices;
}

std::optional<ProcessGrid> nearest_that_fits(const Network& network, const Machine& machine, std::int64_t ranks,
                                             const PlanRequest& request) {
  double before = std::numeric_limits<double>::infinity();
  for (std::int64_t count = ranks; count <= most_ranks; count *= 2) {
    const std::optional<GridMemory> least = least_memory(network, machine, count, request);
    if (!least) continue;
    const MachineSetting& setting = machine.setting_for(count, request.price.setting);
    if (least->bytes <= machine.memory_of_rank(setting)) return least->grid;
    const auto bytes = static_cast<double>(least->bytes);
    if (bytes > worthwhile * before) return std::nullopt;
    before = bytes;
  }
  return std::nullopt;
}

}  // namespace halograd
