#include "halograd/exec/rehearsal.hpp"

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

}  // namespace

Rehearsal::Rehearsal(const Plan& plan, Backend backend, const OptimizerOptions& optimizer, int ranks_on_node)
    : steps_(plan.steps.size()) {
  if (plan.mode != Mode::train) throw UsageError("only a plan that trains can be rehearsed");
  const std::int64_t bytes = plan.arena_bytes + plan.input_bytes() + plan.label_bytes() +
                             plan.parameter_bytes(optimizer_slots(optimizer.kind));
  const std::int64_t available = available_memory_bytes() / ranks_on_node;
  if (bytes > available) {
    throw ResourceError("a rank of grid {} with {} samples needs {}, but the node has {} left for each of its ranks",
                        plan.grid.spatial_name(), plan.samples.count, format_bytes(static_cast<double>(bytes)),
                        format_bytes(static_cast<double>(available)));
  }
  const Plan local = without_messages(plan, kept_);
  parameters_.emplace(local);
  parameters_->initialize(seed);
  optimizer_.emplace(backend, optimizer, local.trainable_elements);
  arena_ = ReservedMemory(std::max<std::int64_t>(1, local.arena_bytes));
  input_ = ReservedMemory(std::max<std::int64_t>(1, local.input_bytes()));
  labels_.resize(static_cast<std::size_t>(local.label_bytes()));
  const RandomStream stream = random_stream(seed, RandomPurpose::synthetic, 0);
  float* const voxels = input_.floats().data();
  parallel_for(local.input_bytes() / 4,
               [&](std::int64_t i) { voxels[i] = stream.uniform(static_cast<std::uint64_t>(i)); });
  const auto classes = static_cast<std::uint32_t>(local.output.shape.channels);
  for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<std::uint8_t>(stream.bits(i) % classes);
  batch_.size = local.batch;
  batch_.samples.resize(static_cast<std::size_t>(local.samples.count));  // in the input slot already
  seconds_.resize(local.steps.size());
  bound_.emplace(local, Binding{.backend = backend,
                                .fabric = nullptr,
                                .parameters = &*parameters_,
                                .optimizer = &*optimizer_,
                                .arena = arena_.data()});
  bound_->connect();
}

std::vector<double> Rehearsal::run() {
  bound_->run({.batch = &batch_,
               .input = input_.floats().data(),
               .labels = labels_.data(),
               .step = runs_++,
               .learning_rate = learning_rate,
               .seed = seed,
               .step_seconds = seconds_.data()});
  std::vector<double> seconds(steps_, 0.0);
  for (std::size_t i = 0; i < kept_.size(); ++i) seconds[kept_[i]] = seconds_[i];
  return seconds;
}

}  // namespace halograd
