#include "halograd/exec/rehearsal.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/random.hpp"
#include "halograd/core/system.hpp"

#include <algorithm>

namespace halograd {
namespace {

constexpr std::uint64_t seed = 1;
constexpr double learning_rate = 1e-5;

bool travels(StepKind kind) {
  return kind == StepKind::exchange_start || kind == StepKind::exchange_wait || kind == StepKind::bucket_start ||
         kind == StepKind::bucket_wait;
}

/// The plan as one rank alone can run it: no exchanges, no sums of gradients, statistics of its own voxels.
Plan without_messages(const Plan& plan, std::vector<std::size_t>& kept) {
  Plan local = plan;
  local.exchanges.clear();
  local.scope = StatisticsScope::global;
  for (ChainUnit& unit : local.chains) unit.statistics_travel = false;
  std::vector<int> place(plan.steps.size(), -1);
  local.steps.clear();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (travels(plan.steps[i].kind)) continue;
    place[i] = static_cast<int>(local.steps.size());
    local.steps.push_back(plan.steps[i]);
    Step& step = local.steps.back();
    if (step.start >= 0) step.start = place[static_cast<std::size_t>(step.start)];
    kept.push_back(i);
  }
  return local;
}

/// Fills device memory with values that the host makes.
template <typename T, typename Make>
void fill(const Queue& queue, const DeviceMemory& memory, std::int64_t count, const Make& make) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
  const DeviceMemory host = queue.works_at_once() ? memory : Device().allocate(bytes);
  auto* const values = reinterpret_cast<T*>(host.data());
  parallel_for(count, [&](std::int64_t i) { values[i] = make(i); });
  if (host.data() == memory.data()) return;
  queue.copy(host.data(), memory.data(), bytes);
  queue.synchronize();
}

}  // namespace

Rehearsal::Rehearsal(const Plan& plan, const Device& device, const OptimizerOptions& optimizer, int ranks_on_node)
    : steps_(plan.steps.size()), queue_(device.make_queue()) {
  if (plan.mode != Mode::train) throw UsageError("only a plan that trains can be rehearsed");
  const std::int64_t bytes = plan.arena_bytes + plan.input_bytes() + plan.label_bytes() +
                             plan.parameter_bytes(optimizer_slots(optimizer.kind));
  const std::int64_t available = device.available_bytes() / ranks_on_node;
  if (bytes > available) {
    throw ResourceError("a rank of grid {} with {} samples needs {}, but the node has {} left for each of its ranks",
                        plan.grid.spatial_name(), plan.samples.count, format_bytes(static_cast<double>(bytes)),
                        format_bytes(static_cast<double>(available)));
  }
  const Plan local = without_messages(plan, kept_);
  parameters_.emplace(local, device, queue_);
  parameters_->initialize(seed);
  optimizer_.emplace(device, queue_, optimizer, local.trainable_elements);
  block_.emplace(device);
  arena_ = device.allocate(std::max<std::int64_t>(1, local.arena_bytes));
  input_ = device.allocate(std::max<std::int64_t>(1, local.input_bytes()));
  labels_ = device.allocate(std::max<std::int64_t>(1, local.label_bytes()));
  const RandomStream stream = random_stream(seed, RandomPurpose::synthetic, 0);
  with_activation_type(local.input.tile.type, [&]<typename T>(T) {
    fill<T>(queue_, input_, local.input_bytes() / static_cast<std::int64_t>(sizeof(T)),
            [&](std::int64_t i) { return T(stream.uniform(static_cast<std::uint64_t>(i))); });
  });
  const auto classes = static_cast<std::uint32_t>(local.output.shape.channels);
  fill<std::uint8_t>(queue_, labels_, local.label_bytes(), [&](std::int64_t i) {
    return static_cast<std::uint8_t>(stream.bits(static_cast<std::uint64_t>(i)) % classes);
  });
  batch_.size = local.batch;
  batch_.samples.resize(static_cast<std::size_t>(local.samples.count));  // in the input slot already
  seconds_.resize(local.steps.size());
  bound_.emplace(local, Binding{.device = device,
                                .queue = queue_,
                                .fabric = nullptr,
                                .parameters = &*parameters_,
                                .optimizer = &*optimizer_,
                                .block = &*block_,
                                .arena = arena_.data()});
  bound_->connect();
}

std::vector<double> Rehearsal::run() {
  bound_->run({.batch = &batch_,
               .input = input_.data(),
               .labels = reinterpret_cast<std::uint8_t*>(labels_.data()),
               .step = runs_++,
               .learning_rate = learning_rate,
               .seed = seed,
               .step_seconds = seconds_.data()});
  std::vector<double> seconds(steps_, 0.0);
  for (std::size_t i = 0; i < kept_.size(); ++i) seconds[kept_[i]] = seconds_[i];
  return seconds;
}

}  // namespace halograd
