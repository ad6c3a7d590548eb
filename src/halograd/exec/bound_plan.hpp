#pragma once

#include "halograd/exec/fabric.hpp"
#include "halograd/exec/halo_exchange.hpp"
#include "halograd/exec/mini_batch.hpp"
#include "halograd/exec/parameter_store.hpp"
#include "halograd/optim/optimizer.hpp"
#include "halograd/plan/plan.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace halograd {

/// What changes from step to step.
struct StepContext {
  const MiniBatch* batch = nullptr;
  float* input = nullptr;          ///< the batch's input slot
  std::uint8_t* labels = nullptr;  ///< and label slot
  std::int64_t step = 0;
  double learning_rate = 0;
  std::uint64_t seed = 0;
  bool averages_begin = true;      ///< running averages begin at step 0, as the plain mean of the first steps
  double* step_seconds = nullptr;  ///< where to leave what each step of the plan took; null: nowhere
};

/// What a plan is bound to; shared by all plans of an executor.
struct Binding {
  Backend backend = Backend::cpu;
  Fabric* fabric = nullptr;  ///< null: one rank alone
  ParameterStore* parameters = nullptr;
  Optimizer* optimizer = nullptr;
  std::byte* arena = nullptr;
};

/// A Plan with its kernels made, its buffers placed and its messages set up: a list of closures that run in order.
/// Running allocates nothing and decides nothing. Closures look up where a buffer lies when they run, since the input's
/// place changes from step to step. Internal to exec/.
class BoundPlan {
public:
  /// Makes the kernels. Throws what they throw; connect() then makes it ready to run.
  BoundPlan(Plan plan, const Binding& binding);
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  /// Collective over the fabric's world. Sets up the messages.
  void connect();
  /// Writes a mini-batch's voxels to `input` (as Plan::input.tile is laid out), its labels to `labels` and its targets
  /// into their buffer.
  void load(const MiniBatch& batch, float* input, std::uint8_t* labels) const;
  /// Collective. Runs every step.
  StepResult run(const StepContext& context);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Where a buffer lies (no_buffer: null); the input: where it lay in the last run.
  [[nodiscard]] float* address(BufferId buffer) const {
    return buffer < 0 ? nullptr : addresses_[static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] float* address(const Tile& tile) const {
    return tile.buffer < 0 ? nullptr : address(tile.buffer) + tile.offset;
  }
  /// What each convolution's kernel holds beside the buffers: packed weights and scratch memory.
  [[nodiscard]] std::vector<std::int64_t> held_bytes() const;
  /// "conv1: jit:avx512_core, …" for each convolution.
  [[nodiscard]] std::vector<std::string> implementations() const;

private:
  using Task = std::function<void()>;
  enum class LaneKind { halo, gradient };

  /// A convolution's kernel and the version of the weights it holds packed.
  struct PackedConvolution {
    std::unique_ptr<Conv3d> kernel;
    std::int64_t version = -1;
  };
  /// What a chain's tasks need beside the unit.
  struct ChainState {
    std::unique_ptr<Chain> kernel;
    std::int64_t values = 0;    ///< means: channels, of each sample where those have statistics of their own
    double* moments = nullptr;  ///< [2, values] in the arena; backward: sums
    float* mean = nullptr;      ///< [values], then the inverse deviation [values]
    std::vector<double> scratch;
    Normalisation norm;
    NormGradient gradient;
  };
  /// What a loss on labels keeps between its steps.
  struct SegmentationState {
    std::vector<double> sums;
    std::vector<double> dice;  ///< [samples of the mini-batch, 2, classes]
    SegmentationOutcome outcome;
  };

  void make_kernels();
  Task bind(std::size_t step);
  Task bind_convolution(const Step& step);
  Task bind_layer(const Step& step);
  Task bind_chain(const Step& step);
  Task bind_communication(std::size_t step);
  Task start_on(LaneKind lane, std::size_t step, Task job);
  Task wait_on(LaneKind lane, std::size_t step);
  Task bind_segmentation(const Step& step);
  void make_chain_state(const ChainUnit& unit);
  void sum_over_ranks(const ChainUnit& unit, double* values, std::int64_t count);
  void finish_statistics(const ChainUnit& unit, ChainState& state);
  void finish_group_statistics(const ChainUnit& unit, ChainState& state);
  void update_running_averages(const ChainUnit& unit, ChainState& state, const double* mean, const double* variance);
  void use_running_statistics(const ChainUnit& unit, ChainState& state);
  void finish_sums(const ChainUnit& unit, ChainState& state);
  void correct_batch_gradient(const ChainUnit& unit, ChainState& state);
  void correct_group_gradient(const ChainUnit& unit, ChainState& state);
  void sum_segmentation(const SegmentationUnit& unit, SegmentationState& state);
  DropoutKey dropout_key(const ChainUnit& unit) const;

  Plan plan_;
  Binding to_;
  StepContext context_;
  double loss_ = 0;
  std::vector<float*> addresses_;  ///< by buffer
  std::vector<PackedConvolution> convolutions_;
  std::vector<ChainState> chains_;
  std::vector<std::unique_ptr<Dense>> denses_;
  std::vector<SegmentationState> segmentations_;
  std::vector<HaloExchange> exchanges_;
  std::vector<Task> jobs_;              ///< by start step, for the lanes
  std::vector<std::uint64_t> tickets_;  ///< by start step
  std::vector<Task> tasks_;
};

}  // namespace halograd
