#include "halograd/perf/calibration.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/median.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/exec/rehearsal.hpp"
#include "halograd/kernels/input_converter.hpp"
#include "halograd/perf/communication_benchmark.hpp"
#include "halograd/perf/fit.hpp"
#include "halograd/perf/operation.hpp"
#include "halograd/plan/smaller_grid.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace halograd {
namespace {

bool knows_all(const Plan& plan, const MachineSetting& setting) {
  return std::ranges::all_of(plan.steps, [&](const Step& step) {
    return !computes(step.kind) || setting.measured.contains(operation_key(plan, step).whole);
  });
}

/// Runs of all ranks begin together, so that each meets the others' use of memory and cores.
std::vector<std::vector<double>> rehearse(const Communicator& ranks, const CalibrationOptions& options,
                                          Rehearsal& rehearsal) {
  std::vector<std::vector<double>> runs;
  rehearsal.run();
  const double begin = now_seconds();
  for (bool enough = false; !enough;) {
    ranks.barrier();
    runs.push_back(rehearsal.run());
    const bool last =
        static_cast<int>(runs.size()) >= options.most_runs ||
        (static_cast<int>(runs.size()) >= options.least_runs && now_seconds() - begin >= options.least_seconds);
    enough = ranks.all_reduce_max(std::int64_t{last ? 1 : 0}) != 0;
  }
  return runs;
}

/// What the loader's thread takes to convert a rank's samples of 16 bits, on its own.
double load_seconds(const Plan& plan, const Device& device) {
  const InputUnit& input = plan.input;
  const std::vector<std::uint16_t> voxels(static_cast<std::size_t>(input.shape.channels * input.own.volume()), 1);
  const DeviceMemory converted =
      device.allocate(dtype_size(input.tile.type) * input.shape.channels * input.tile.box.volume());
  const ConvertDesc desc{.dst_type = input.tile.type,
                         .transform = InputTransform::log1p,
                         .channels = input.shape.channels,
                         .source = input.own,
                         .dst = input.tile.box};
  InputConverter converter(device, device.make_queue());
  const OneThread alone;
  std::vector<double> times;
  for (int i = 0; i < 4; ++i) {
    const double begin = now_seconds();
    converter.begin(1);
    converter.convert(desc, voxels.data(), converted.data());
    converter.finish();
    if (i > 0) times.push_back(now_seconds() - begin);  // the first touches the memory
  }
  return median(times) * static_cast<double>(plan.samples.count);
}

using Samples = std::map<std::string, MeasuredKernel>;

/// A plan may hold an operation several times: its runs count alike.
Samples samples_of(const Plan& plan, const std::vector<std::vector<double>>& runs,
                   const std::vector<std::int64_t>& held_bytes, double load) {
  std::map<std::string, std::vector<double>> times;
  Samples samples;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (!computes(step.kind)) continue;
    const std::string key = operation_key(plan, step).whole;
    const Operation operation = operation_of(plan, step);
    MeasuredKernel& sample = samples[key];
    sample.flops = operation.flops;
    sample.bytes = operation.bytes;
    if (step.kind == StepKind::convolution_forward && step.part == 0) {
      // The same pass may belong to kernels that hold more or less: those of a first layer have no pass to the input.
      sample.held_bytes = std::max(sample.held_bytes, held_bytes[static_cast<std::size_t>(step.unit)]);
    }
    for (const std::vector<double>& run : runs) times[key].push_back(run[i]);
  }
  for (auto& [key, sample] : samples) sample.seconds = median(std::move(times[key]));
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::load_input) samples[operation_key(plan, step).whole].seconds = load;
  }
  return samples;
}

/// Every rank's samples, their seconds averaged where several have the same.
void add_all(const Communicator& ranks, const Samples& own, MachineSetting& setting) {
  nlohmann::json text = nlohmann::json::object();
  for (const auto& [key, sample] : own) text[key] = {sample.seconds, sample.flops, sample.bytes, sample.held_bytes};
  std::map<std::string, std::pair<MeasuredKernel, int>> sums;
  for (const std::string& other : ranks.all_gather(text.dump())) {
    const nlohmann::json samples = nlohmann::json::parse(other);
    for (const auto& [key, values] : samples.items()) {
      auto& [sum, count] = sums[key];
      sum = {.seconds = sum.seconds + values[0].get<double>(),
             .flops = values[1].get<double>(),
             .bytes = values[2].get<double>(),
             .held_bytes = std::max(sum.held_bytes, values[3].get<std::int64_t>())};
      ++count;
    }
  }
  for (auto& [key, entry] : sums) {
    entry.first.seconds /= entry.second;
    setting.measured.emplace(key, entry.first);
  }
}

}  // namespace

std::int64_t measure_baseline(const Communicator& world, const Network& network, const CalibrationOptions& options) {
  const ProcessGrid grid{.data = world.size()};
  Executor executor(network, world, {.grid = grid, .device = options.device, .optimizer = options.optimizer});
  const Plan& plan = executor.prepare(Mode::train, grid.data);
  MiniBatch batch{.size = grid.data, .samples = std::vector<SampleView>(1)};  // of zeros, in the input slot already
  for (int step = 0; step < 2; ++step) executor.train(batch, step, 0);
  const std::int64_t peak = peak_rss_bytes();
  std::int64_t counted = RankMemory{.optimizer_slots = optimizer_slots(options.optimizer.kind)}.of(plan);
  agree(world, [&] {
    for (const std::int64_t held : Rehearsal(plan, options.device, options.optimizer).held_bytes()) counted += held;
  });
  return world.all_reduce_max(std::max<std::int64_t>(0, peak - counted));
}

bool measure_plans(const Communicator& ranks, const std::vector<Plan>& plans, const CalibrationOptions& options,
                   MachineSetting& setting) {
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const Plan& plan =
      rank < plans.size() && plans.size() >= static_cast<std::size_t>(ranks.size()) ? plans[rank] : plans.front();
  if (ranks.all_reduce_max(std::int64_t{knows_all(plan, setting) ? 0 : 1}) == 0) return false;
  std::optional<Rehearsal> rehearsal;
  agree(ranks, [&] { rehearsal.emplace(plan, options.device, options.optimizer, ranks.ranks_on_node()); });
  const std::vector<std::vector<double>> runs = rehearse(ranks, options, *rehearsal);
  double load = 0;
  agree(ranks, [&] { load = load_seconds(plan, options.device); });
  add_all(ranks, samples_of(plan, runs, rehearsal->held_bytes(), load), setting);
  return true;
}

void measure_messages(const Communicator& world, Machine& machine, MachineSetting& setting) {
  if (world.size() == 1) return;
  const int on_node = world.ranks_on_node();
  if (on_node > 1) {
    const Communicator node = world.on_one_node() ? world : world.split(world.rank() / on_node, world.rank());
    const CommunicationSamples samples = measure_communication(node);
    setting.link = fit_link(samples.messages);
    setting.reduction = fit_reduction(samples.sums);
  }
  if (world.on_one_node()) return;
  // Ranks of the same place on two nodes become neighbours.
  const int nodes = world.size() / on_node;
  const Communicator across = world.split(0, world.rank() % on_node * nodes + world.rank() / on_node);
  const CommunicationSamples samples = measure_communication(across);
  machine.network = fit_link(samples.messages);
  machine.network_reduction = fit_reduction(samples.sums);
}

void fit_rates(MachineSetting& setting) {
  std::map<std::string, std::vector<KernelSample>> kinds;
  for (const auto& [key, kernel] : setting.measured) {
    if (kernel.seconds <= 0) continue;  // too short for the clock: says nothing of a rate
    kinds[key.substr(0, key.find(' '))].push_back(
        {.flops = kernel.flops, .bytes = kernel.bytes, .seconds = kernel.seconds});
  }
  for (const auto& [kind, samples] : kinds) setting.rates[kind] = fit_rate(samples);
}

}  // namespace halograd
