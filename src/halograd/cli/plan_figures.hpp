#pragma once

#include "halograd/plan/compiler.hpp"

#include <cstdint>

namespace halograd {

/// What a step needs, each figure on the rank where it is largest.
struct PlanFigures {
  std::int64_t arena_bytes = 0;      ///< activations: the arena and one input slot
  std::int64_t input_bytes = 0;      ///< of one input slot and its labels; training has a second one beside the arena
  std::int64_t parameter_bytes = 0;  ///< weights, gradients, optimiser state
  std::int64_t message_buffer_bytes = 0;  ///< held for halo messages, beside the arena
  std::int64_t halo_bytes = 0;            ///< sent in a step
  std::int64_t halo_messages = 0;         ///< likewise
  std::int64_t sums = 0;                  ///< reductions over ranks in a step: statistics, loss, gradient buckets
};

PlanFigures figures_of(const Plan& plan, int optimizer_slots);

/// The largest over the ranks of the first data-parallel group, which has the most samples. Compiles each of them;
/// `options.rank` does not matter.
PlanFigures largest_figures(const Network& network, CompileOptions options, int optimizer_slots);

}  // namespace halograd
