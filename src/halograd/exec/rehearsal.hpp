#pragma once

#include "halograd/core/memory.hpp"
#include "halograd/exec/bound_plan.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace halograd {

/// A training plan of any rank of any grid, run on this rank alone, without its messages, to see how long each of its
/// steps takes. Margins hold zeros and statistics are this rank's own, so that what it computes means nothing.
class Rehearsal {
public:
  /// Makes the kernels and takes the memory that the rank would. Throws ResourceError where the node has less.
  Rehearsal(const Plan& plan, Backend backend, const OptimizerOptions& optimizer);

  /// Seconds of each step of the plan; 0 of those that send or await.
  std::vector<double> run();

  /// What each convolution's kernel holds beside the buffers, by index in Plan::convolutions.
  [[nodiscard]] std::vector<std::int64_t> held_bytes() const;
};

}  // namespace halograd
