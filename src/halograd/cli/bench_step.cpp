#include "halograd/cli/bench_step.hpp"

#include "halograd/cli/plan_figures.hpp"
#include "halograd/cli/planned_model.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/random.hpp"
#include "halograd/core/system.hpp"
#include "halograd/kernels/conv_floor.hpp"
#include "halograd/perf/cost_model.hpp"
#include "halograd/train/model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halograd {
namespace {

constexpr std::int64_t wide = 256;  // from here on fewer repetitions do
constexpr double learning_rate = 1e-4;

/// Small counts, as a universe has them, in memory that is returned to the system afterwards.
class RandomBatch {
public:
  RandomBatch(const Plan& plan, std::int64_t size)
      : sample_elements_(plan.input.shape.channels * plan.input.own.volume()),
        voxels_(2 * std::max<std::int64_t>(1, plan.samples.count * sample_elements_)),
        labels_(static_cast<std::size_t>(plan.label_bytes())),
        targets_(labels_.empty() ? static_cast<std::size_t>(plan.samples.count * plan.output.shape.channels *
                                                            plan.output.own.volume())
                                 : 0) {
    auto* const counts = reinterpret_cast<std::uint16_t*>(voxels_.data());
    const RandomStream stream = random_stream(1, RandomPurpose::synthetic, static_cast<std::uint32_t>(plan.rank));
    // One draw gives eight counts from 0 to 15; at 512³ the drawing would else take longer than a step.
    const std::int64_t elements = plan.samples.count * sample_elements_;
    parallel_for((elements + 7) / 8, [&](std::int64_t block) {
      const std::uint32_t bits = stream.bits(static_cast<std::uint64_t>(block));
      for (std::int64_t i = 8 * block; i < std::min(elements, 8 * block + 8); ++i) {
        counts[i] = static_cast<std::uint16_t>((bits >> (4 * (i % 8))) & 15U);
      }
    });
    for (std::size_t i = 0; i < targets_.size(); ++i)
      targets_[i] = 2 * stream.uniform((std::uint64_t{1} << 40) + i) - 1;
    const auto classes = static_cast<std::uint32_t>(plan.output.shape.channels);
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<std::uint8_t>(stream.bits(i) % classes);
    batch_ = {.size = size, .samples = {}, .targets = targets_.data(), .transform = InputTransform::log1p};
    for (std::int64_t n = 0; n < plan.samples.count; ++n) {
      const std::uint8_t* labels = labels_.empty() ? nullptr : labels_.data() + n * plan.input.own.volume();
      batch_.samples.push_back(
          {.data = counts + n * sample_elements_, .dtype = DType::u16, .labels = labels, .name = "random input"});
    }
  }
  [[nodiscard]] const MiniBatch& batch() const { return batch_; }

  /// Gives the voxels' memory back once they stand in the network's input buffer.
  void drop_voxels() {
    for (SampleView& sample : batch_.samples) sample = {.name = sample.name};
    voxels_ = ReservedMemory();
    labels_ = {};
  }

private:
  std::int64_t sample_elements_;
  ReservedMemory voxels_;
  std::vector<std::uint8_t> labels_;
  std::vector<float> targets_;
  MiniBatch batch_;
};

struct TimedStep {
  double seconds = 0;  ///< from barrier to barrier
  StepResult result;
};

/// What is measured while the network's memory is held.
struct Measurement {
  TimedStep first;  ///< not recorded: its phases have times of their own
  TimedStep median;
  double fastest = 0;
  Plan compiled;
  PlanFigures plan;
  double flops = 0;  ///< of this rank's convolutions and dense layers
  std::vector<Conv3dDesc> convolutions;
  std::vector<std::string> implementations;
  std::string transport;
  std::int64_t peak_rss = 0;
  std::int64_t device_bytes = 0;  ///< in use on a GPU
};

TimedStep timed_step(const Communicator& world, Executor& executor, const MiniBatch& batch, std::int64_t step) {
  world.barrier();
  const double start = now_seconds();
  TimedStep timed{.result = executor.train(batch, step, learning_rate)};
  world.barrier();
  timed.seconds = now_seconds() - start;
  if (!std::isfinite(timed.result.loss)) throw NumericalError("the loss of step {} is not finite", step);
  return timed;
}

Measurement measure(const Communicator& world, const Config& config, const ExecutorOptions& run,
                    const BenchStepOptions& options) {
  const std::int64_t batch_size = config.train.batch_size;
  Executor executor(build_network(config.model), world, run);
  const Plan& plan = executor.prepare(Mode::train, batch_size);
  std::optional<RandomBatch> input;
  agree(world, [&] {
    input.emplace(plan, batch_size);
    executor.load(Mode::train, input->batch());
    input->drop_voxels();
  });
  std::vector<TimedStep> steps;
  TimedStep first;
  for (std::int64_t i = 0; i < options.warm_up + options.steps; ++i) {
    const TimedStep timed = timed_step(world, executor, input->batch(), i);
    if (i == 0) first = timed;
    if (i >= options.warm_up) steps.push_back(timed);
  }
  std::ranges::sort(steps, {}, &TimedStep::seconds);
  const Device& device = executor.device();
  Measurement measured{
      .first = first,
      .median = steps[steps.size() / 2],
      .fastest = steps.front().seconds,
      .compiled = plan,
      .plan = figures_of(plan, optimizer_slots(run.optimizer.kind)),
      .convolutions = {},
      .implementations = executor.implementations(Mode::train, batch_size),
      .transport = executor.transport(),
      .peak_rss = peak_rss_bytes(),
      .device_bytes = device.backend() == Backend::cuda ? device.total_bytes() - device.available_bytes() : 0};
  for (const Step& step : plan.steps) measured.flops += step.flops;
  for (const ConvolutionUnit& unit : plan.convolutions) {
    const auto* convolution = std::get_if<Conv3dDesc>(&unit.desc);
    measured.convolutions.push_back(convolution != nullptr ? *convolution
                                                           : transposed(std::get<Deconv3dDesc>(unit.desc)));
  }
  return measured;
}

/// Whether all ranks that share this rank's device can time their largest convolution there at once.
bool floor_fits(const Communicator& world, const Device& device, const std::vector<Conv3dDesc>& convolutions) {
  const double own = conv_floor_bytes(device, convolutions);
  std::vector<double> bytes(static_cast<std::size_t>(world.size()));
  world.all_gather(&own, sizeof own, bytes.data());
  const std::vector<std::string> devices = world.all_gather(device.id());
  double all = 0;
  // Of processors those of other nodes are counted too: too careful there, and right on one node.
  for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
    if (devices[rank] == device.id()) all += bytes[rank];
  }
  const bool fits = 1.1 * all < static_cast<double>(device.available_bytes());
  return world.all_reduce_max(std::int64_t{fits ? 0 : 1}) == 0;
}

/// The slowest rank's sum of its convolutions run alone; none where some device lacks the memory for it.
std::optional<double> floor_seconds(const Communicator& world, const Device& device,
                                    const std::vector<Conv3dDesc>& convolutions, int repetitions) {
  world.barrier();  // everybody has let go of the network's memory
  if (!floor_fits(world, device, convolutions)) {
    log::warn("the convolutions are not timed alone: there is no memory for it");
    return std::nullopt;
  }
  double seconds = 0;
  try {
    agree(world, [&] { seconds = conv_floor_seconds(device, convolutions, repetitions); });
  } catch (const ResourceError& error) {  // the step has been measured, and is worth a report
    log::warn("the convolutions are not timed alone: {}", error.what());
    return std::nullopt;
  }
  return world.all_reduce_max(seconds);
}

/// Adds what the cost model says of the slowest rank's plan, with one input slot as here.
void add_prediction(const Communicator& world, const Plan& plan, const Machine& machine, const ExecutorOptions& run,
                    nlohmann::ordered_json& report) {
  PlanCost cost;
  agree(world, [&] {
    cost = price(plan, machine,
                 {.optimizer_slots = optimizer_slots(run.optimizer.kind),
                  .input_slots = 1,
                  .setting = {.ranks_on_node = world.ranks_on_node(), .threads = thread_count()}});
  });
  std::vector<StepCost> all(static_cast<std::size_t>(world.size()));
  world.all_gather(&cost.step, sizeof cost.step, all.data());
  report["predicted"] = to_json(std::ranges::max(all, {}, &StepCost::seconds));
  report["predicted"]["memory_bytes"] = world.all_reduce_max(cost.memory_bytes);
}

Config bench_config(const BenchStepOptions& options) {
  Config config = config_of(options.model);
  const std::int64_t batch = config.train.batch_size;
  config.train.batch_size = std::max<std::int64_t>(1, batch);
  config.train.precision = options.precision;
  validate_option(config, "--precision");
  config.parallel.device = options.device;
  validate_option(config, "--device");
  config.train.batch_size = batch;
  return config;
}

}  // namespace

nlohmann::ordered_json bench_step(const Communicator& world, const BenchStepOptions& given) {
  BenchStepOptions options = given;
  Config config = bench_config(options);
  if (options.steps < 0 || options.warm_up < 0) throw UsageError("--steps and --warm-up must not be negative");
  const bool large = config.model.width >= wide;
  if (options.steps == 0) options.steps = large ? 3 : 5;
  const ExecutorOptions run = executor_options(config, world);
  std::optional<Machine> machine;
  if (!options.machine.empty()) {
    machine = load_same_machine(world, options.machine);
    agree(world, [&] {  // said before anything is measured
      static_cast<void>(
          machine->setting_for(world.size(), {.ranks_on_node = world.ranks_on_node(), .threads = thread_count()}));
    });
  }
  if (config.train.batch_size == 0) config.train.batch_size = run.grid.data;

  const Measurement measured = measure(world, config, run, options);
  std::optional<double> floor;
  if (options.floor) floor = floor_seconds(world, run.device, measured.convolutions, large ? 2 : 5);

  double flops = measured.flops;
  world.all_reduce_sum(&flops, 1);
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  const bool recorded = measured.median.result.recorded_seconds > 0;
  const StepResult& parts = recorded ? measured.first.result : measured.median.result;
  nlohmann::ordered_json report{{"model", config.model.name},
                                {"width", config.model.width},
                                {"batch_norm", config.model.batch_norm},
                                {"batch", config.train.batch_size},
                                {"grid", run.grid.spatial_name()},
                                {"ranks", world.size()},
                                {"threads", thread_count()},
                                {"precision", config.train.precision},
                                {"device", run.device.name()},
                                {"transport", measured.transport},
                                {"recorded", recorded},
                                {"device_bytes", world.all_reduce_max(measured.device_bytes)},
                                {"steps", options.steps},
                                {"step_seconds", measured.median.seconds},
                                {"fastest_step_seconds", measured.fastest},
                                {"forward_seconds", parts.forward_seconds},
                                {"backward_seconds", parts.backward_seconds},
                                {"update_seconds", parts.update_seconds},
                                {"comm_seconds", parts.communication_seconds},
                                {"conv_floor_seconds", number(floor)},
                                {"gflops", flops / measured.median.seconds / 1e9},
                                {"peak_rss_bytes", world.all_reduce_max(measured.peak_rss)},
                                {"arena_bytes", world.all_reduce_max(measured.plan.arena_bytes)},
                                {"halo_bytes_per_step", world.all_reduce_max(measured.plan.halo_bytes)},
                                {"halo_messages_per_step", world.all_reduce_max(measured.plan.halo_messages)},
                                {"loss", measured.median.result.loss},
                                {"implementations", measured.implementations}};
  if (machine) add_prediction(world, measured.compiled, *machine, run, report);
  return report;
}

}  // namespace halograd
