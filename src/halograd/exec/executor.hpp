#pragma once

#include "halograd/exec/bound_plan.hpp"
#include "halograd/nn/network.hpp"
#include "halograd/plan/compiler.hpp"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace halograd {

struct ExecutorOptions {
  ProcessGrid grid;
  Device device;  ///< where this rank computes
  Precision precision = Precision::f32;
  StatisticsScope statistics = StatisticsScope::global;
  OptimizerOptions optimizer;
  std::uint64_t seed = 1;  ///< of the initial weights and of dropout
  std::int64_t bucket_bytes = CompileOptions{}.bucket_bytes;
  bool record_steps = true;                  ///< on a device that can: training steps are recorded and replayed
  std::optional<FabricTransport> transport;  ///< default: what choose_transport says
  int input_slots = 1;                       ///< two: one can be filled while a step reads the other
  bool direct_convolutions = false;          ///< see CompileOptions
  bool input_gradient = false;               ///< see CompileOptions
  std::optional<Partition> input_partition;  ///< see CompileOptions
};

/// What the plans of an executor with these options are compiled with, for any of its ranks.
CompileOptions compile_options(const ExecutorOptions& options, std::int64_t rank, Mode mode, std::int64_t batch);

/// Throws UsageError where the kernels of `backend` don't compute in `precision`.
void require_precision(Precision precision, Backend backend);

/// Runs a network on this rank of a grid: holds the parameters, one arena, the input slots, and a bound plan for each
/// mode and mini-batch size it was asked for. All members that run are collective over the communicator.
///
///     Executor executor(network, Communicator::world(), {.grid = grid});
///     StepResult result = executor.train(batch, step, learning_rate);
class Executor {
public:
  /// Collective. Throws UsageError where the network can't be split so, ResourceError where memory runs out, on all
  /// ranks alike.
  Executor(const Network& network, const Communicator& world, const ExecutorOptions& options);

  Executor(const Executor&) = delete;  // bound plans point into it
  Executor& operator=(const Executor&) = delete;

  /// Batch norm's running averages go on from the values there (of given weights) at their usual decay. Otherwise they
  /// begin anew at step 0, as the plain mean of the first steps.
  void continue_running_averages() { continue_averages_ = true; }

  /// Compiles and binds ahead of the first step (else the first step does). Collective.
  const Plan& prepare(Mode mode, std::int64_t batch);

  /// Writes a mini-batch's voxels into its input slot and its targets in place without running, so that steps on the
  /// same samples (with their data left out) need neither the raw voxels nor the time to convert them. Not collective
  /// once prepared; not beside a step, since targets are in the arena.
  void load(Mode mode, const MiniBatch& batch) {
    bound(mode, batch.size).load(batch, input_slot(batch.slot), label_slot(batch.slot));
  }

  /// Where the step of a mini-batch with this `slot` finds its input: [local samples, Plan::input.tile.box, channels],
  /// the box the same for every mode and size. Filled by load(), by a step whose samples have data, or, in own voxels
  /// (Plan::input.own, the rest is the step's), by another thread while a step works on another slot. On the device, of
  /// Plan::input.tile's type. Throws UsageError where there is no such slot.
  [[nodiscard]] std::byte* input_slot(int slot) const;

  /// Likewise for labels: [local samples, Plan::input.own]. Null where the network's loss takes none.
  [[nodiscard]] std::uint8_t* label_slot(int slot) const;

  /// One training step: forward, backward, update. `step` counts from 0 over the whole run.
  StepResult train(const MiniBatch& batch, std::int64_t step, double learning_rate);
  /// The loss with fixed statistics and no dropout.
  StepResult evaluate(const MiniBatch& batch);
  StepResult predict(const MiniBatch& batch);

  /// This rank's part of the last evaluate's or predict's output: [local samples, Plan::output.own, channels]; valid
  /// until the next step or call.
  [[nodiscard]] std::span<const float> output() const;
  /// The last train's gradient of the network's input: [local samples, own box widened as Plan::input.tile says,
  /// channels]. Needs input_gradient. May stand over the input, in its slot. Valid likewise.
  [[nodiscard]] std::span<const float> input_gradient() const;

  [[nodiscard]] ParameterStore& parameters() { return *parameters_; }
  [[nodiscard]] Optimizer& optimizer() { return *optimizer_; }
  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] const ExecutorOptions& options() const { return options_; }
  [[nodiscard]] const Communicator& world() const { return world_; }
  /// The largest arena of any plan so far, and the input and label slots, in bytes.
  [[nodiscard]] std::int64_t arena_bytes() const { return arena_bytes_ + options_.input_slots * slot_bytes_; }
  /// How messages travel, in one line; empty on one rank alone.
  [[nodiscard]] std::string transport() const { return fabric_ ? fabric_->transport() : ""; }
  /// Where it computes, and the queue of its steps.
  [[nodiscard]] const Device& device() const { return options_.device; }
  [[nodiscard]] const Queue& queue() const { return queue_; }
  /// Those and the buffers of its messages: what running will have touched, weights and their like apart.
  [[nodiscard]] std::int64_t planned_bytes() const { return arena_bytes() + message_bytes_; }
  [[nodiscard]] std::vector<std::string> implementations(Mode mode, std::int64_t batch);

private:
  BoundPlan& bound(Mode mode, std::int64_t batch);
  std::int64_t available_bytes() const;
  void require_memory(std::int64_t bytes, const std::string& what, const std::function<std::string()>& advice) const;
  std::string advice_on(const Plan& plan) const;
  void reserve(const Plan& plan);
  StepResult run(Mode mode, const MiniBatch& batch, std::int64_t step, double learning_rate);

  std::span<const float> as_floats(const std::byte* values, DType type, std::int64_t count) const;

  Network network_;
  Communicator world_;
  ExecutorOptions options_;
  Queue queue_;
  std::optional<StepBlock> block_;
  DeviceMemory arena_;
  std::vector<DeviceMemory> input_slots_;
  std::vector<DeviceMemory> label_slots_;  ///< none without labels
  std::int64_t device_ranks_ = 1;          ///< how many share this rank's device
  std::int64_t arena_bytes_ = 0;
  std::int64_t slot_bytes_ = 0;  ///< of an input slot and its labels
  std::int64_t message_bytes_ = 0;
  Box input_box_;  ///< that of every plan's input
  bool continue_averages_ = false;
  std::optional<ParameterStore> parameters_;
  std::optional<Optimizer> optimizer_;
  std::map<std::pair<Mode, std::int64_t>, std::unique_ptr<BoundPlan>> plans_;
  const BoundPlan* last_ = nullptr;
  mutable std::vector<float> on_host_;  ///< what output() and input_gradient() show where the device's can't be
  std::optional<Fabric> fabric_;        // last: its lanes stop first
};

}  // namespace halograd
