#pragma once

#include "halograd/exec/mini_batch.hpp"
#include "halograd/plan/plan.hpp"

#include <functional>
#include <vector>

namespace halograd {

/// A value of a sample (its number in the global mini-batch) at a voxel (global index) and channel.
using VoxelFunction = std::function<float(std::int64_t sample, const Index& voxel, std::int64_t channel)>;

/// A rank's share of a mini-batch whose inputs and targets are functions of global indices, so that every grid sees the
/// same samples: for tests, and for data that a program makes itself. Of a network whose loss is on labels, targets are
/// labels, with one channel.
class GeneratedBatch {
public:
  GeneratedBatch(const Plan& plan, const VoxelFunction& input, const VoxelFunction& target);
  GeneratedBatch(const GeneratedBatch&) = delete;
  GeneratedBatch& operator=(const GeneratedBatch&) = delete;

  [[nodiscard]] const MiniBatch& view() const { return batch_; }
  /// [local samples, Plan::input.own, channels]; may be changed in place.
  [[nodiscard]] std::vector<float>& inputs() { return inputs_; }

private:
  std::vector<float> inputs_;
  std::vector<float> targets_;
  std::vector<std::uint8_t> labels_;
  MiniBatch batch_;
};

}  // namespace halograd
