#pragma once

#include "halograd/plan/compiler.hpp"

#include <cstdint>
#include <optional>

namespace halograd {

/// What a rank keeps besides the plan's own buffers.
struct RankMemory {
  int optimizer_slots = 2;
  int input_slots = 1;

  /// Weights and their like, activations, input slots and messages, in bytes.
  [[nodiscard]] std::int64_t of(const Plan& plan) const;
};

/// A grid of a sample that is finer than one which did not fit.
struct SmallerGrid {
  ProcessGrid grid;
  std::int64_t bytes = 0;  ///< on a rank in its middle
};

/// Of the grids with as many data-parallel groups as `options` has, and twice, four times … as many parts of a sample,
/// the first whose ranks need no more than `bytes`, and of those the one that needs the least; none where no grid of
/// powers of two does. A pure function: for messages of errors.
std::optional<SmallerGrid> smallest_grid_that_fits(const Network& network, const CompileOptions& options,
                                                   const RankMemory& memory, std::int64_t bytes);

}  // namespace halograd
