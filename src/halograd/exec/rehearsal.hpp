#pragma once

#include "halograd/exec/bound_plan.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace halograd {

/// A training plan of any rank of any grid, run on this rank alone and without its messages, to see how long each of
/// its steps takes. Margins hold zeros and statistics are this rank's own, so that what it computes means nothing.
class Rehearsal {
public:
  /// Makes the kernels and reserves the memory that the rank would need. Throws ResourceError where the node has less
  /// for each of so many ranks that rehearse at once, UsageError for a plan that does not train.
  Rehearsal(const Plan& plan, const Device& device, const OptimizerOptions& optimizer, int ranks_on_node = 1);
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  /// Runs a training step; seconds of each step of the plan, 0 of those that exchange halos or sum
  /// gradients. Those that would sum statistics or the loss take what this rank computes of them.
  std::vector<double> run();

  /// What each convolution's kernel holds beside the buffers, by index in Plan::convolutions.
  [[nodiscard]] std::vector<std::int64_t> held_bytes() const { return bound_->held_bytes(); }

private:
  std::vector<std::size_t> kept_;  ///< of the plan's steps, those that are run
  std::size_t steps_ = 0;
  std::optional<ParameterStore> parameters_;
  std::optional<Optimizer> optimizer_;
  Queue queue_;
  std::optional<StepBlock> block_;
  DeviceMemory arena_;
  DeviceMemory input_;
  DeviceMemory labels_;
  MiniBatch batch_;
  std::vector<double> seconds_;  ///< of those kept
  std::int64_t runs_ = 0;
  std::optional<BoundPlan> bound_;  // last: it points to the others
};

}  // namespace halograd
