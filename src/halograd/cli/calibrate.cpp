#include "halograd/cli/commands.hpp"
#include "halograd/cli/model_options.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/cli/planned_model.hpp"
#include "halograd/cli/processor.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/memory.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/core/version.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "halograd/perf/calibration.hpp"
#include "halograd/perf/planner.hpp"
#include "halograd/train/model.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

namespace halograd {
namespace {

struct CalibrateOptions {
  std::vector<std::string> models{"cosmoflow", "unet3d"};
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> ranks;
  std::vector<std::string> grids;
  bool batch_norm = false;
  std::string out;
};

/// A network on a grid, to be measured.
struct Subject {
  Config config;
  ProcessGrid grid;
};

/// Each model at each width and mini-batch, on each grid of each number of ranks.
std::vector<Subject> subjects(const CalibrateOptions& options, int ranks) {
  std::vector<Subject> list;
  const auto or_none = [](const auto& values) {
    std::vector<std::optional<std::int64_t>> result(values.begin(), values.end());
    if (result.empty()) result.emplace_back();
    return result;
  };
  const std::vector<std::int64_t> counts = options.ranks.empty() ? std::vector<std::int64_t>{ranks} : options.ranks;
  for (const std::string& model : options.models) {
    for (const auto& width : or_none(options.widths)) {
      for (const auto& batch : or_none(options.batches)) {
        ModelOptions named{.model = model, .width = width, .batch_norm = options.batch_norm, .batch = batch};
        Config config = config_of(named);
        for (const std::int64_t count : counts) {
          for (const ProcessGrid& grid : wanted_grids(options.grids, count)) {
            Subject subject{config, grid};
            if (config.train.batch_size == 0) subject.config.train.batch_size = grid.data;
            if (grid.data <= subject.config.train.batch_size) list.push_back(std::move(subject));
          }
        }
      }
    }
  }
  return list;
}

std::string title_of(const Subject& subject) {
  return fmt::format("{}, mini-batch {}, grid {} on {} rank(s)", model_title(subject.config.model),
                     subject.config.train.batch_size, subject.grid.spatial_name(), subject.grid.size());
}

/// Why the network can't be split so; nothing where it can.
std::optional<std::string> refusal(const Subject& subject) {
  try {
    const Network network = build_network(subject.config.model);
    for (const std::int64_t rank : telling_ranks(subject.grid)) {
      static_cast<void>(plan_for(network, subject.grid, rank, plan_request(subject.config), Backend::cpu));
    }
    return std::nullopt;
  } catch (const UsageError& error) {
    return error.what();
  }
}

/// What can be measured of what is asked for. Throws UsageError where that is nothing.
std::vector<Subject> measurable_subjects(const CalibrateOptions& options, int ranks) {
  for (const std::int64_t count : options.ranks) {
    if (count >= ranks) continue;
    throw UsageError(
        "--ranks {} is below the {} ranks started: start calibrate with as many ranks as will share a node", count,
        ranks);
  }
  std::vector<Subject> list;
  std::vector<std::string> refused;
  for (Subject& subject : subjects(options, ranks)) {
    if (std::optional<std::string> reason = refusal(subject)) {
      refused.push_back(std::move(*reason));
    } else {
      list.push_back(std::move(subject));
    }
  }
  if (list.empty()) {
    throw UsageError("nothing to measure: {}",
                     refused.empty()
                         ? "--grid must name one whose parts divide the ranks and leave no more groups than "
                           "the mini-batch has samples"
                         : refused.front());
  }
  if (!refused.empty()) log::info("leaving out {} grid(s) that can't be: {}", refused.size(), refused.front());
  return list;
}

/// As many ranks as there are play their own part; of more, those that differ most are played one after another.
void measure(const Communicator& world, const Subject& subject, const CalibrationOptions& options,
             MachineSetting& setting) {
  const Network network = build_network(subject.config.model);
  const PlanRequest request = plan_request(subject.config);
  const auto plan_of = [&](std::int64_t rank) { return plan_for(network, subject.grid, rank, request, Backend::cpu); };
  if (subject.grid.size() == world.size()) {
    std::vector<Plan> plans;
    for (std::int64_t rank = 0; rank < world.size(); ++rank) plans.push_back(plan_of(rank));
    measure_plans(world, plans, options, setting);
    return;
  }
  for (const std::int64_t rank : telling_ranks(subject.grid)) measure_plans(world, {plan_of(rank)}, options, setting);
}

/// The file's setting of these ranks and threads, made where there is none.
MachineSetting& setting_of(Machine& machine, std::int64_t ranks_on_node, std::int64_t threads) {
  for (MachineSetting& setting : machine.settings) {
    if (setting.ranks_on_node == ranks_on_node && setting.threads == threads) return setting;
  }
  const auto before = std::ranges::find_if(machine.settings, [&](const MachineSetting& setting) {
    return std::pair(setting.ranks_on_node, setting.threads) > std::pair(ranks_on_node, threads);
  });
  return *machine.settings.insert(before, {.ranks_on_node = ranks_on_node, .threads = threads});
}

/// A machine that is not described yet.
Machine this_machine() {
  const Processor processor = this_processor();
  return {.name = processor.model.empty() ? "this machine" : processor.model,
          .description = {{"processor", processor.model},
                          {"cores", fmt::to_string(core_count())},
                          {"memory", format_bytes(static_cast<double>(total_memory_bytes()))},
                          {"halograd", version()}},
          .node_memory_bytes = available_memory_bytes()};  // what is free for training
}

void calibrate(const Communicator& world, const CalibrateOptions& options) {
  const std::vector<Subject> list = measurable_subjects(options, world.size());
  agree(world, [&] {
    if (world.rank() == 0) require_writable(options.out);
  });
  const bool known = world.all_reduce_max(std::int64_t{world.rank() == 0 && std::filesystem::exists(options.out)}) != 0;
  Machine machine = known ? load_same_machine(world, options.out) : this_machine();
  if (machine.backend != Backend::cpu) {
    throw UsageError("{} has figures of device {}, but calibrate measures processors: give another file with --out",
                     options.out, backend_name(machine.backend));
  }
  MachineSetting& setting = setting_of(machine, world.ranks_on_node(), thread_count());
  if (setting.baseline_bytes == 0) {  // a new one
    setting.baseline_bytes = measure_baseline(world, cosmoflow({.width = 32}), {});
    // Each rank has a thread that moves messages beside those that compute.
    setting.overlap = world.ranks_on_node() * (thread_count() + 1) <= core_count() ? 1 : 0;
  }
  const auto save = [&] {
    fit_rates(setting);
    agree(world, [&] {
      if (world.rank() == 0) save_machine(machine, options.out);
    });
  };
  const bool between_nodes = !world.on_one_node() && machine.network.empty();
  if (world.size() > 1 && (setting.link.empty() || between_nodes)) {
    log::info("measuring messages between {} ranks", world.size());
    measure_messages(world, machine, setting);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    log::info("measuring {} of {}: {}", i + 1, list.size(), title_of(list[i]));
    try {
      measure(world, list[i], {}, setting);
    } catch (const Error& error) {  // on all ranks alike: this grid is too large for the node, or none of the network
      log::warn("  left out: {}", error.what());
    }
    save();
  }
  print(world, fmt::format("{}: {} operations with {} rank(s) on a node of {} thread(s)", options.out,
                           setting.measured.size(), setting.ranks_on_node, setting.threads));
}

}  // namespace

void add_calibrate_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand(
      "calibrate", "Measures this machine for `plan`; start it with as many ranks as will share a node");
  const auto options = std::make_shared<CalibrateOptions>();
  command->add_option("models", options->models, "cosmoflow, unet3d, configuration files (default: the first two)");
  command->add_option("--out", options->out, "the machine file; what it holds already is kept")->required();
  command->add_option("--width", options->widths, "voxels along each side, one or more as 64,128")->delimiter(',');
  command->add_option("--batch", options->batches, "global mini-batches (default: one sample a group)")->delimiter(',');
  command->add_flag("--batch-norm", options->batch_norm, "CosmoFlow with batch normalisation");
  command->add_option("--ranks", options->ranks, "numbers of ranks to be planned (default: those started)")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_option("--grid", options->grids, "only these, as 2x1x1,1x2x1 (default: all)")->delimiter(',');
  command->callback([=] { calibrate(world, *options); });
}

}  // namespace halograd
