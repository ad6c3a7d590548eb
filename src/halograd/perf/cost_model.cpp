#include "halograd/perf/cost_model.hpp"

#include "halograd/core/error.hpp"
#include "halograd/perf/operation.hpp"
#include "halograd/plan/smaller_grid.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace halograd {
namespace {

/// Which part of StepCost a message's time goes to.
double StepCost::*part_of(StepKind kind) {
  switch (kind) {
    case StepKind::exchange_start:
    case StepKind::exchange_wait: return &StepCost::halo_seconds;
    case StepKind::bucket_start:
    case StepKind::bucket_wait: return &StepCost::gradient_seconds;
    default: return &StepCost::statistics_seconds;
  }
}

/// A rank's steps on their clocks.
class Walk {
public:
  Walk(const Plan& plan, const Machine& machine, const MachineSetting& setting, bool loads_ahead)
      : plan_(plan), machine_(machine), setting_(setting), loads_ahead_(loads_ahead), ends_(plan.steps.size()) {}

  PlanCost run();

private:
  double computing(const Step& step);
  [[nodiscard]] double message(const Step& step) const;
  [[nodiscard]] double exchange(const ExchangePlan& exchange) const;
  [[nodiscard]] double sum(double bytes, std::int64_t first, std::int64_t ranks) const;
  [[nodiscard]] double world_sum(double bytes) const { return sum(bytes, 0, plan_.grid.size()); }
  [[nodiscard]] double statistics_sum(const ChainUnit& unit, std::int64_t values) const;
  [[nodiscard]] double averages_sum(const ChainUnit& unit) const;
  [[nodiscard]] std::int64_t group_begin() const;
  [[nodiscard]] std::string layer_of(const Step& step) const;
  void start(std::size_t index);
  void pass(const Step& step, double StepCost::*part, double seconds);

  const Plan& plan_;
  const Machine& machine_;
  const MachineSetting& setting_;
  bool loads_ahead_;
  PlanCost cost_;
  std::map<std::string, std::size_t> layers_;  ///< where each stands in cost_.layers
  double now_ = 0;
  double halo_lane_ = 0;      ///< when it is free
  double gradient_lane_ = 0;  ///< likewise
  double messages_ = 0;
  double load_ = 0;
  double guessed_ = 0;        ///< of the computing, what was not measured
  std::vector<double> ends_;  ///< of messages, by start step
};

double interpolated_seconds(const KernelRate& rate, const Operation& operation) {
  double flops = operation.flops;
  if (operation.out_channels > 0 && rate.channel_tile > 1) {
    const std::int64_t tiles = (operation.out_channels + rate.channel_tile - 1) / rate.channel_tile;
    flops *= static_cast<double>(tiles * rate.channel_tile) / static_cast<double>(operation.out_channels);
  }
  const double computing = rate.flops_per_second > 0 ? flops / rate.flops_per_second : 0;
  const double moving = rate.bytes_per_second > 0 ? operation.bytes / rate.bytes_per_second : 0;
  return rate.overhead_seconds + std::max(computing, moving);
}

/// How much larger or smaller than all its measured relatives an operation may be to be priced by them.
constexpr double farthest = 8;

/// From measured operations that differ in extents alone: between the next smaller and the next larger one in flops (or
/// bytes, where there are none) on logarithms, else in proportion to a neighbour that is not too far.
std::optional<double> relatives_seconds(const MachineSetting& setting, const std::string& family,
                                        const Operation& operation) {
  const auto work_of = [](double flops, double bytes) { return flops > 0 ? flops : bytes; };
  const double work = work_of(operation.flops, operation.bytes);
  if (work <= 0) return std::nullopt;
  std::pair<double, double> below{0, 0};  // work, seconds
  std::pair<double, double> above{0, 0};
  for (auto at = setting.measured.lower_bound(family); at != setting.measured.end() && at->first.starts_with(family);
       ++at) {
    const std::pair found{work_of(at->second.flops, at->second.bytes), at->second.seconds};
    if (found.first <= 0 || found.second <= 0) continue;
    if (found.first <= work && found.first > below.first) below = found;
    if (found.first >= work && (above.first == 0 || found.first < above.first)) above = found;
  }
  if (below.first == 0 && above.first == 0) return std::nullopt;
  if (below.first == 0 || above.first == 0 || below.first == above.first) {
    const auto& [known, seconds] = below.first > 0 ? below : above;
    if (work > farthest * known || known > farthest * work) return std::nullopt;
    return seconds * work / known;
  }
  const double share = std::log(work / below.first) / std::log(above.first / below.first);
  return below.second * std::pow(above.second / below.second, share);
}

double Walk::computing(const Step& step) {
  const Operation operation = operation_of(plan_, step);
  std::optional<double> seconds;
  if (!setting_.measured.empty()) {
    const OperationKey key = operation_key(plan_, step);
    const auto known = setting_.measured.find(key.whole);
    if (known != setting_.measured.end()) return known->second.seconds;
    seconds = relatives_seconds(setting_, key.family, operation);
  }
  if (!seconds) seconds = interpolated_seconds(setting_.rate(operation.kind), operation);
  guessed_ += *seconds;
  return *seconds;
}

/// The first rank of this one's spatial group.
std::int64_t Walk::group_begin() const {
  return plan_.rank / plan_.grid.spatial_size() * plan_.grid.spatial_size();
}

/// Phases follow one another, and so do a phase's messages, which one thread packs and unpacks: the paper's Σ 2·SR.
double Walk::exchange(const ExchangePlan& exchange) const {
  double seconds = 0;
  for (const std::vector<Transfer>& phase : exchange.phases) {
    for (const Transfer& transfer : phase) {
      const auto bytes = static_cast<double>(
          std::max(exchange.message_bytes(transfer.send_box), exchange.message_bytes(transfer.receive_box)));
      const bool same_node =
          (group_begin() + transfer.peer) / setting_.ranks_on_node == plan_.rank / setting_.ranks_on_node;
      seconds += message_seconds(same_node ? setting_.link : machine_.network, bytes);
    }
  }
  return seconds;
}

/// Over `ranks` neighbours from rank `first` on.
double Walk::sum(double bytes, std::int64_t first, std::int64_t ranks) const {
  if (ranks <= 1) return 0;
  const bool same_node = first / setting_.ranks_on_node == (first + ranks - 1) / setting_.ranks_on_node;
  return reduction_seconds(same_node ? setting_.reduction : machine_.network_reduction, bytes, ranks);
}

double Walk::statistics_sum(const ChainUnit& unit, std::int64_t values) const {
  if (!unit.statistics_travel) return 0;
  const auto bytes = 8 * static_cast<double>(values);
  return unit.statistics_world ? world_sum(bytes) : sum(bytes, group_begin(), plan_.grid.spatial_size());
}

/// Where every group has statistics of its own, the running averages are the mean over groups.
double Walk::averages_sum(const ChainUnit& unit) const {
  const bool differ = plan_.mode == Mode::train && !unit.desc.per_sample && !unit.statistics_world;
  return differ && plan_.grid.data > 1 ? world_sum(16 * static_cast<double>(unit.desc.channels)) : 0;
}

double Walk::message(const Step& step) const {
  const auto unit = static_cast<std::size_t>(step.unit);
  switch (step.kind) {
    case StepKind::exchange_start: return exchange(plan_.exchanges[unit]);
    case StepKind::statistics_start: {  // the mean, then the squared distances
      const ChainUnit& chain = plan_.chains[unit];
      const std::int64_t means =
          chain.statistics_sets() * chain.desc.channels / std::max<std::int64_t>(1, chain.group_channels);
      return 2 * statistics_sum(chain, means) + averages_sum(chain);
    }
    case StepKind::sums_start: {
      const ChainUnit& chain = plan_.chains[unit];
      return statistics_sum(chain, 2 * chain.statistics_sets() * chain.desc.channels);
    }
    default: return world_sum(static_cast<double>(step.message_bytes));
  }
}

/// Exchanges and copies belong to the layers that they are named after: "conv2 halo" to conv2.
std::string Walk::layer_of(const Step& step) const {
  std::string name = step_name(plan_, step);
  if (step.kind == StepKind::bucket_start) return name;
  const std::string* best = nullptr;
  for (const LayerPlacement& placement : plan_.placements) {
    const bool fits = name == placement.name || name.starts_with(placement.name + " ");
    if (fits && (best == nullptr || placement.name.size() > best->size())) best = &placement.name;
  }
  return best != nullptr ? *best : name;
}

/// Moves the clock on, and books why.
void Walk::pass(const Step& step, double StepCost::*part, double seconds) {
  now_ += seconds;
  cost_.step.*part += seconds;
  if (step.phase == Phase::update || (seconds == 0 && !computes(step.kind))) return;
  const std::string name = layer_of(step);
  const auto [at, added] = layers_.emplace(name, cost_.layers.size());
  if (added) cost_.layers.push_back({.name = name});
  LayerCost& layer = cost_.layers[at->second];
  (step.phase == Phase::forward ? layer.forward_seconds : layer.backward_seconds) += seconds;
}

/// The lane's thread may take the cores from computing: what doesn't overlap passes at once.
void Walk::start(std::size_t index) {
  const Step& step = plan_.steps[index];
  double& lane = step.kind == StepKind::bucket_start ? gradient_lane_ : halo_lane_;
  const double seconds = message(step);
  messages_ += seconds;
  lane = std::max(lane, now_) + seconds;
  ends_[index] = lane;
  pass(step, part_of(step.kind), (1 - setting_.overlap) * seconds);
}

PlanCost Walk::run() {
  StepCost& cost = cost_.step;
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    if (step.kind == StepKind::load_input) {
      if (loads_ahead_) load_ = computing(step);  // by another thread, a step ahead
    } else if (computes(step.kind)) {
      pass(step, is_convolution(step.kind) ? &StepCost::convolution_seconds : &StepCost::other_seconds,
           computing(step));
    } else if (step.start >= 0) {
      pass(step, part_of(step.kind), std::max(0.0, ends_[static_cast<std::size_t>(step.start)] - now_));
    } else {
      start(i);
    }
  }
  const double waited = cost.halo_seconds + cost.statistics_seconds + cost.gradient_seconds;
  cost.hidden_seconds = std::max(0.0, messages_ - waited);
  const double computed = cost.convolution_seconds + cost.other_seconds + load_;
  cost.interpolated = computed > 0 ? std::min(1.0, guessed_ / computed) : 0;
  if (loads_ahead_) {
    cost.data_seconds = (1 - setting_.overlap) * load_ + std::max(0.0, setting_.overlap * load_ - cost.seconds());
  }
  return std::move(cost_);
}

/// What its kernels hold, as far as they were measured.
std::int64_t kernel_bytes(const Plan& plan, const MachineSetting& setting) {
  std::int64_t bytes = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::convolution_forward || step.part != 0) continue;  // a kernel's parts share them
    const auto known = setting.measured.find(operation_key(plan, step).whole);
    if (known != setting.measured.end()) bytes += known->second.held_bytes;
  }
  return bytes;
}

}  // namespace

PlanCost price(const Plan& plan, const Machine& machine, const PriceOptions& options) {
  const MachineSetting& setting = machine.setting_for(plan.grid.size(), options.setting);
  PlanCost cost = Walk(plan, machine, setting, options.input_slots > 1).run();
  if (!std::isfinite(cost.step.seconds())) {
    throw UsageError("by the machine file a step would take forever: a rate, latency or exponent in it is absurd");
  }
  cost.memory_bytes = memory_of(plan, machine, options);
  return cost;
}

std::int64_t memory_of(const Plan& plan, const Machine& machine, const PriceOptions& options) {
  const MachineSetting& setting = machine.setting_for(plan.grid.size(), options.setting);
  const RankMemory memory{.optimizer_slots = options.optimizer_slots, .input_slots = options.input_slots};
  return setting.baseline_bytes + memory.of(plan) + kernel_bytes(plan, setting);
}

}  // namespace halograd
