#pragma once

#include "halograd/exec/fabric.hpp"
#include "halograd/exec/halo_exchange.hpp"
#include "halograd/exec/mini_batch.hpp"
#include "halograd/exec/parameter_store.hpp"
#include "halograd/exec/step_block.hpp"
#include "halograd/kernels/input_converter.hpp"
#include "halograd/kernels/statistics.hpp"
#include "halograd/optim/optimizer.hpp"
#include "halograd/plan/plan.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace halograd {

/// What changes from step to step.
struct StepContext {
  const MiniBatch* batch = nullptr;
  std::byte* input = nullptr;      ///< the batch's input slot
  std::uint8_t* labels = nullptr;  ///< and label slot
  std::int64_t step = 0;
  double learning_rate = 0;
  std::uint64_t seed = 0;
  bool averages_begin = true;      ///< running averages begin at step 0, as the plain mean of the first steps
  double* step_seconds = nullptr;  ///< where to leave what each step of the plan took; null: nowhere
};

/// What a plan is bound to; shared by all plans of an executor.
struct Binding {
  Device device;
  Queue queue;               ///< of computation
  Fabric* fabric = nullptr;  ///< null: one rank alone
  ParameterStore* parameters = nullptr;
  Optimizer* optimizer = nullptr;
  StepBlock* block = nullptr;
  std::byte* arena = nullptr;
  bool record = true;  ///< training steps, on a device that can
};

/// A Plan with its kernels made, its buffers placed and its messages set up: a list of closures that run in order.
/// Running allocates nothing and decides nothing. Closures look up where a buffer lies when they run, since the input's
/// place changes from step to step. On the processor a closure has done its work when it returns; on a GPU it has
/// listed it on a queue. Internal to exec/.
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
  void load(const MiniBatch& batch, std::byte* input, std::uint8_t* labels);
  /// Collective. Runs every step.
  StepResult run(const StepContext& context);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Where a buffer lies (no_buffer: null); the input: where it lay in the last run.
  [[nodiscard]] std::byte* address(BufferId buffer) const {
    return buffer < 0 ? nullptr : addresses_[static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] std::byte* address(const Tile& tile) const {
    return tile.buffer < 0 ? nullptr : address(tile.buffer) + tile.offset_bytes();
  }
  /// Of buffers that are f32 in every precision.
  [[nodiscard]] float* floats(BufferId buffer) const { return reinterpret_cast<float*>(address(buffer)); }
  /// What each convolution's kernel holds beside the buffers: packed weights and scratch memory.
  [[nodiscard]] std::vector<std::int64_t> held_bytes() const;
  /// "conv1: jit:avx512_core, …" for each convolution.
  [[nodiscard]] std::vector<std::string> implementations() const;

private:
  using Task = std::function<void()>;
  /// Communication: told which queue it is on.
  using Job = std::function<void(const Queue& queue)>;
  enum class LaneKind { halo, gradient };

  /// A convolution's kernel and the version of the weights it holds packed.
  struct PackedConvolution {
    std::unique_ptr<Conv3d> kernel;
    std::int64_t version = -1;
  };
  /// What a chain's tasks need beside the unit.
  struct ChainState {
    std::unique_ptr<Chain> kernel;
    StatisticsDesc statistics;
    double* moments = nullptr;  ///< see StatisticsBuffer
    double* sums = nullptr;
    float* mean = nullptr;
    float* inverse_deviation = nullptr;
    Normalisation norm;
    NormGradient gradient;
  };
  /// What a loss on labels keeps between its steps, on the device.
  struct SegmentationState {
    DeviceMemory memory;
    double* own = nullptr;   ///< this rank's sums
    double* sums = nullptr;  ///< those of the mini-batch
    double* dice = nullptr;  ///< [samples of the mini-batch, 2, classes]
  };
  /// A training step on the samples in one input slot. The first is not recorded: libraries load kernels and take
  /// memory in it.
  struct Recording {
    bool warm = false;
    Graph graph;
  };
  /// A message or sum in flight: its job, what it waits for and what waits for it.
  struct Flight {
    Task job;
    std::uint64_t ticket = 0;
    Event posted;
    Event done;
  };

  void list(std::size_t first, StepResult& result);
  void list_recorded(std::size_t first, StepResult& result);
  Graph record(std::size_t first);
  Graph try_to_record(std::size_t first);
  void stop_recording();
  void make_kernels();
  Task bind(std::size_t step);
  Task bind_convolution(const Step& step);
  Task bind_layer(const Step& step);
  Task bind_chain(const Step& step);
  Task bind_communication(std::size_t step);
  Task start_on(LaneKind lane, std::size_t step, Job job);
  Task wait_on(LaneKind lane, std::size_t step);
  Task bind_segmentation(const Step& step);
  void make_chain_state(const ChainUnit& unit);
  void make_segmentation_state(const SegmentationUnit& unit);
  void sum_over_ranks(const ChainUnit& unit, double* values, std::int64_t count);
  void finish_statistics(const Queue& queue, const ChainUnit& unit, ChainState& state);
  void finish_averages(const Queue& queue, const ChainUnit& unit, ChainState& state);
  void finish_sums(const Queue& queue, const ChainUnit& unit, ChainState& state);
  void sum_segmentation(const Queue& queue, const SegmentationUnit& unit, SegmentationState& state);
  DropoutKey dropout_key(const ChainUnit& unit) const;
  double finish_loss();

  Plan plan_;
  Binding to_;
  StepContext context_;
  std::vector<std::byte*> addresses_;  ///< by buffer
  std::vector<PackedConvolution> convolutions_;
  std::vector<ChainState> chains_;
  std::vector<std::unique_ptr<Dense>> denses_;
  std::vector<SegmentationState> segmentations_;
  InputConverter converter_;
  std::vector<std::string_view> converted_;  ///< names of the samples given to it
  std::vector<HaloExchange> exchanges_;
  std::vector<Flight> flights_;  ///< by start step
  std::vector<Task> tasks_;
  std::vector<std::string> labels_;                   ///< by step
  std::map<const std::byte*, Recording> recordings_;  ///< by input slot
};

}  // namespace halograd
