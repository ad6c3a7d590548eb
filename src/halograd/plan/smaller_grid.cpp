#include "halograd/plan/smaller_grid.hpp"

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

constexpr std::int64_t most_parts = 512;

/// Depth no less than height, height no less than width: the others need as much.
std::vector<Extent> cuts_into(std::int64_t parts) {
  std::vector<Extent> cuts;
  for (std::int64_t w = 1; w * w * w <= parts; w *= 2) {
    for (std::int64_t h = w; h * h * w <= parts; h *= 2) {
      if (parts % (h * w) == 0) cuts.push_back({parts / (h * w), h, w});
    }
  }
  return cuts;
}

std::optional<std::int64_t> bytes_needed(const Network& network, CompileOptions options, const RankMemory& memory) {
  const Extent parts = options.grid.spatial();
  options.rank = options.grid.rank({.group = 0, .place = {parts.d / 2, parts.h / 2, parts.w / 2}});
  try {
    return memory.of(compile(network, options));
  } catch (const UsageError&) {
    return std::nullopt;  // the network can't be split so
  }
}

}  // namespace

std::int64_t RankMemory::of(const Plan& plan) const {
  return plan.parameter_bytes(optimizer_slots) + plan.arena_bytes +
         input_slots * (plan.input_bytes() + plan.label_bytes()) + plan.message_buffer_bytes();
}

std::optional<SmallerGrid> smallest_grid_that_fits(const Network& network, const CompileOptions& options,
                                                   const RankMemory& memory, std::int64_t bytes) {
  CompileOptions finer = options;
  finer.input_partition.reset();
  std::int64_t parts = 1;
  while (parts <= options.grid.spatial().volume()) parts *= 2;
  for (; parts <= most_parts; parts *= 2) {
    std::optional<SmallerGrid> best;
    for (const Extent& cut : cuts_into(parts)) {
      finer.grid = {options.grid.data, cut.d, cut.h, cut.w};
      const std::optional<std::int64_t> needed = bytes_needed(network, finer, memory);
      if (needed && *needed <= bytes && (!best || *needed < best->bytes)) best = {finer.grid, *needed};
    }
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace halograd
