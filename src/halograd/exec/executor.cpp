#include "halograd/exec/executor.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"
#include "halograd/plan/smaller_grid.hpp"

#include <algorithm>
#include <stdexcept>

namespace halograd {
namespace {

/// Sums of a loss on labels are longer than statistics of few channels.
constexpr std::int64_t smallest_sum = 4096;

/// Which ranks of a node share a device: all share the processor.
std::int64_t ranks_sharing(const Device& device, const Communicator& world) {
  if (device.id().empty()) return world.ranks_on_node();
  const std::vector<std::string> ids = world.all_gather(device.id());
  return std::ranges::count(ids, device.id());
}

}  // namespace

CompileOptions compile_options(const ExecutorOptions& options, std::int64_t rank, Mode mode, std::int64_t batch) {
  return {.grid = options.grid,
          .rank = rank,
          .batch = batch,
          .mode = mode,
          .scope = options.statistics,
          .precision = options.precision,
          .direct_convolutions = options.direct_convolutions,
          .input_gradient = options.input_gradient,
          .input_partition = options.input_partition,
          .bucket_bytes = options.bucket_bytes,
          .traits = kernel_traits(options.device.backend())};
}

void require_precision(Precision precision, Backend backend) {
  if (precision == Precision::f32 || backend == Backend::cuda) return;
  if (precision == Precision::tf32) throw UsageError("tf32 is a precision of GPUs; this device has f32 and bf16");
  if (backend == Backend::reference) throw UsageError("the reference backend computes in f32 only");
}

Executor::Executor(const Network& network, const Communicator& world, const ExecutorOptions& options)
    : network_(network), world_(world), options_(options) {
  device_ranks_ = ranks_sharing(options_.device, world_);
  agree(world_, [&] {
    if (options_.grid.size() != world_.size()) {
      throw UsageError("a grid of {} ranks on {}", options_.grid.size(), world_.size());
    }
    if (options_.input_slots < 1) {
      throw UsageError("an executor needs at least one input slot, not {}", options_.input_slots);
    }
    const Device& device = options_.device;
    require_precision(options_.precision, device.backend());
    queue_ = device.make_queue();
    const Plan plan = compile(network_, compile_options(options_, world_.rank(), Mode::predict, 1));
    require_memory(plan.parameter_bytes(optimizer_slots(options_.optimizer.kind)), "weights and optimiser state",
                   [] { return "take more nodes or a smaller network"; });
    parameters_.emplace(plan, device, queue_);
    parameters_->initialize(options_.seed);
    optimizer_.emplace(device, queue_, options_.optimizer, plan.trainable_elements);
    block_.emplace(device);
    input_box_ = plan.input.tile.box;
    const std::int64_t capacity = device.total_bytes();
    arena_ = device.reserve(capacity);
    const bool labels = std::holds_alternative<SegmentationLoss>(network_.nodes().back().layer);
    for (int i = 0; i < options_.input_slots; ++i) {
      input_slots_.push_back(device.reserve(capacity));
      if (labels) label_slots_.push_back(device.reserve(capacity));
    }
  });
  if (world_.size() > 1) {
    std::int64_t widest = smallest_sum / 2;
    for (const ParameterPlan& entry : parameters_->parameters()) {
      if (entry.spec.dims.size() == 1) widest = std::max(widest, entry.spec.dims.front());
    }
    fabric_.emplace(world_, options_.grid, options_.device, options_.transport, 2 * widest,
                    parameters_->trainable_elements());
  }
}

std::int64_t Executor::available_bytes() const {
  return options_.device.available_bytes() / device_ranks_;
}

/// Ranks that share a device share what it has left. Throws ResourceError with the numbers.
void Executor::require_memory(std::int64_t bytes, const std::string& what,
                              const std::function<std::string()>& advice) const {
  const std::int64_t available = available_bytes();
  if (bytes <= available) return;
  throw ResourceError("{} need {} on rank {}, but the {} has {} left for each of its ranks: {}", what,
                      format_bytes(static_cast<double>(bytes)), world_.rank(),
                      options_.device.backend() == Backend::cuda ? options_.device.name() : "node",
                      format_bytes(static_cast<double>(available)), advice());
}

/// Which grid would do where a plan does not fit: weights and the like are here already.
std::string Executor::advice_on(const Plan& plan) const {
  const RankMemory memory{optimizer_slots(options_.optimizer.kind), options_.input_slots};
  const std::int64_t held = plan.parameter_bytes(memory.optimizer_slots);
  const auto finer =
      smallest_grid_that_fits(network_, compile_options(options_, world_.rank(), plan.mode, plan.batch), memory,
                              held + arena_bytes_ + options_.input_slots * slot_bytes_ + available_bytes());
  if (!finer) return "take a smaller mini-batch or a smaller network; no finer grid makes it small enough";
  return fmt::format("grid {} ({} ranks) takes {} a rank; or take a smaller mini-batch", finer->grid.spatial_name(),
                     finer->grid.size(), format_bytes(static_cast<double>(finer->bytes)));
}

void Executor::reserve(const Plan& plan) {
  const std::int64_t arena = std::max(arena_bytes_, plan.arena_bytes);
  const std::int64_t slot = std::max(slot_bytes_, plan.input_bytes() + plan.label_bytes());
  const std::int64_t more = arena - arena_bytes_ + options_.input_slots * (slot - slot_bytes_);
  require_memory(more + plan.message_buffer_bytes(), fmt::format("activations of a mini-batch of {}", plan.batch),
                 [&] { return advice_on(plan); });
  arena_.commit(arena);
  for (const DeviceMemory& memory : input_slots_) memory.commit(plan.input_bytes());
  for (const DeviceMemory& memory : label_slots_) memory.commit(plan.label_bytes());
  arena_bytes_ = arena;
  slot_bytes_ = slot;
  message_bytes_ += plan.message_buffer_bytes();
}

BoundPlan& Executor::bound(Mode mode, std::int64_t batch) {
  const auto known = plans_.find({mode, batch});
  if (known != plans_.end()) return *known->second;
  std::unique_ptr<BoundPlan> made;
  const Binding binding{.device = options_.device,
                        .queue = queue_,
                        .fabric = fabric_ ? &*fabric_ : nullptr,
                        .parameters = &*parameters_,
                        .optimizer = &*optimizer_,
                        .block = &*block_,
                        .arena = arena_.data(),
                        .record = options_.record_steps};
  agree(world_, [&] {
    Plan plan = compile(network_, compile_options(options_, world_.rank(), mode, batch));
    // Who fills a slot need not know which plan will read it.
    if (plan.input.tile.box != input_box_) throw std::logic_error("plans of one network differ in their input's box");
    reserve(plan);
    made = std::make_unique<BoundPlan>(std::move(plan), binding);
  });
  made->connect();
  return *plans_.emplace(std::pair{mode, batch}, std::move(made)).first->second;
}

const Plan& Executor::prepare(Mode mode, std::int64_t batch) {
  return bound(mode, batch).plan();
}

std::byte* Executor::input_slot(int slot) const {
  if (slot < 0 || slot >= options_.input_slots) {
    throw UsageError("input slot {} of an executor with {}", slot, options_.input_slots);
  }
  return input_slots_[static_cast<std::size_t>(slot)].data();
}

std::uint8_t* Executor::label_slot(int slot) const {
  static_cast<void>(input_slot(slot));  // there are as many
  if (label_slots_.empty()) return nullptr;
  return reinterpret_cast<std::uint8_t*>(label_slots_[static_cast<std::size_t>(slot)].data());
}

StepResult Executor::run(Mode mode, const MiniBatch& batch, std::int64_t step, double learning_rate) {
  BoundPlan& plan = bound(mode, batch.size);
  last_ = &plan;
  return plan.run({.batch = &batch,
                   .input = input_slot(batch.slot),
                   .labels = label_slot(batch.slot),
                   .step = step,
                   .learning_rate = learning_rate,
                   .seed = options_.seed,
                   .averages_begin = !continue_averages_});
}

StepResult Executor::train(const MiniBatch& batch, std::int64_t step, double learning_rate) {
  return run(Mode::train, batch, step, learning_rate);
}
StepResult Executor::evaluate(const MiniBatch& batch) {
  return run(Mode::evaluate, batch, 0, 0);
}
StepResult Executor::predict(const MiniBatch& batch) {
  return run(Mode::predict, batch, 0, 0);
}

std::span<const float> Executor::output() const {
  const OutputUnit& output = last_->plan().output;
  const std::int64_t elements = last_->plan().samples.count * output.shape.channels * output.own.volume();
  return as_floats(last_->address(output.buffer), output.type, elements);
}

std::span<const float> Executor::input_gradient() const {
  const Plan& plan = last_->plan();
  const std::int64_t elements = plan.samples.count * plan.input.shape.channels * plan.input.gradient.box.volume();
  return as_floats(last_->address(plan.input.gradient), plan.input.gradient.type, elements);
}

/// The device's own where the host can read them as they are.
std::span<const float> Executor::as_floats(const std::byte* values, DType type, std::int64_t count) const {
  const auto size = static_cast<std::size_t>(count);
  if (queue_.works_at_once() && type == DType::f32) return {reinterpret_cast<const float*>(values), size};
  std::vector<std::byte> raw(size * static_cast<std::size_t>(dtype_size(type)));
  queue_.copy(values, raw.data(), static_cast<std::int64_t>(raw.size()));
  queue_.synchronize();
  on_host_.resize(size);
  with_activation_type(type, [&]<typename T>(T) {
    const auto* const typed = reinterpret_cast<const T*>(raw.data());
    std::transform(typed, typed + size, on_host_.begin(), [](T value) { return static_cast<float>(value); });
  });
  return on_host_;
}

std::vector<std::string> Executor::implementations(Mode mode, std::int64_t batch) {
  return bound(mode, batch).implementations();
}

}  // namespace halograd
