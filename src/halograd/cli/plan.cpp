#include "halograd/cli/commands.hpp"
#include "halograd/cli/model_options.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/cli/planned_model.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"
#include "halograd/perf/scaling_chart.hpp"
#include "halograd/train/model.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace halograd {
namespace {

struct PlanOptions {
  ModelOptions model;
  std::string machine;
  std::vector<std::int64_t> ranks;
  std::vector<std::string> changes;
  std::vector<std::string> grids;
  SettingChoice setting;
  std::string chart;
  bool all = false;
  bool json = false;
};

constexpr std::size_t rows_shown = 8;

/// The grids of one number of ranks, best first.
struct RankAdvice {
  std::int64_t ranks = 1;
  std::int64_t batch = 1;
  std::vector<GridPrice> grids;
  [[nodiscard]] const GridPrice* best() const {
    return !grids.empty() && grids.front().fits ? &grids.front() : nullptr;
  }
};

/// What `plan` finds out.
struct Advice {
  Config config;
  Machine machine;
  SettingChoice setting;
  PaperFigures paper;
  double memory_factor = 1;
  std::vector<RankAdvice> strong;  ///< one mini-batch
  std::vector<RankAdvice> weak;    ///< it grows with the ranks
};

PlanRequest request_for(const Advice& advice, const Config& config) {
  PlanRequest request = plan_request(config);
  request.price.setting = advice.setting;
  return request;
}

RankAdvice advise(const Advice& advice, const PlanOptions& options, std::int64_t ranks, std::int64_t batch) {
  Config config = advice.config;
  config.train.batch_size = batch;
  const std::vector<ProcessGrid> grids = wanted_grids(options.grids, ranks);
  return {ranks, batch, price_grids(build_network(config.model), advice.machine, grids, request_for(advice, config))};
}

std::string list_of(const std::vector<std::int64_t>& counts) {
  return fmt::format("{}", fmt::join(counts, ", "));
}

/// Throws where no grid of any number of ranks fits, with the nearest that would do.
void require_one(const Advice& advice, const PlanOptions& options) {
  std::vector<GridPrice> too_large;
  std::string refused;
  for (const RankAdvice& each : advice.strong) {
    if (each.best() != nullptr) return;
    for (const GridPrice& price : each.grids) {
      if (price.refused.empty()) too_large.push_back(price);
      if (refused.empty()) refused = price.refused;
    }
  }
  if (!too_large.empty())
    refuse_all_grids(advice.config, advice.machine, too_large, request_for(advice, advice.config));
  if (!refused.empty()) throw UsageError("no grid of {} rank(s): {}", list_of(options.ranks), refused);
  throw UsageError(
      "no grid of {} rank(s): --grid must name one whose parts divide them and leave no more groups than the "
      "mini-batch of {} has samples",
      list_of(options.ranks), advice.config.train.batch_size);
}

Advice advise(const PlanOptions& options) {
  Advice advice{.config = config_of(options.model),
                .machine = load_machine(options.machine, options.changes),
                .setting = options.setting};
  if (advice.config.train.batch_size == 0) advice.config.train.batch_size = std::ranges::max(options.ranks);
  const std::int64_t batch = advice.config.train.batch_size;
  require_precision(plan_request(advice.config).precision, advice.machine.backend);
  advice.paper = paper_figures(build_network(advice.config.model));
  advice.memory_factor = advice.config.model.batch_norm ? 2 : 1;
  std::vector<std::int64_t> counts = options.ranks;
  std::ranges::sort(counts);
  counts.erase(std::ranges::unique(counts).begin(), counts.end());
  for (const std::int64_t ranks : counts) advice.strong.push_back(advise(advice, options, ranks, batch));
  require_one(advice, options);
  if (counts.size() < 2 || options.chart.empty()) return advice;
  for (const std::int64_t ranks : counts) {
    const std::int64_t grown = std::max<std::int64_t>(1, batch * ranks / counts.back());
    advice.weak.push_back(advise(advice, options, ranks, grown));
  }
  return advice;
}

std::string seconds_text(double seconds) {
  return fmt::format("{:.4g}", seconds < 1e-9 ? 0 : seconds);
}

double samples_per_second(const RankAdvice& advice, const GridPrice& price) {
  return static_cast<double>(advice.batch) / price.cost.step.seconds();
}

std::string grid_table(const RankAdvice& advice, bool all) {
  std::vector<std::vector<std::string>> rows{{"", "grid", "memory", "step s", "convolutions", "other", "halos",
                                              "statistics", "gradients", "data", "hidden", "samples/s"}};
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < advice.grids.size(); ++i) {
    const GridPrice& price = advice.grids[i];
    if (!all && i >= rows_shown) {
      ++left_out;
      continue;
    }
    if (!price.refused.empty()) {
      rows.push_back({"-", grid_name(price.grid), price.refused});
      continue;
    }
    const StepCost& step = price.cost.step;
    rows.push_back({i == 0 && price.fits ? "*"
                    : price.fits         ? ""
                                         : "too large",
                    grid_name(price.grid), format_bytes(static_cast<double>(price.cost.memory_bytes)),
                    seconds_text(step.seconds()), seconds_text(step.convolution_seconds),
                    seconds_text(step.other_seconds), seconds_text(step.halo_seconds),
                    seconds_text(step.statistics_seconds), seconds_text(step.gradient_seconds),
                    seconds_text(step.data_seconds), seconds_text(step.hidden_seconds),
                    fmt::format("{:.4g}", samples_per_second(advice, price))});
  }
  std::string text = format_table(rows, {false, false, true, true, true, true, true, true, true, true, true, true});
  if (left_out > 0) text += fmt::format("\n  and {} more (--all)", left_out);
  return text;
}

/// The smallest power of two of ranks a sample whose memory the paper's accounting fills.
std::int64_t paper_ranks(double bytes, double rank_bytes) {
  std::int64_t ranks = 1;
  while (static_cast<double>(ranks) * rank_bytes < bytes) ranks *= 2;
  return ranks;
}

double rank_memory(const Machine& machine) {
  return static_cast<double>(machine.memory_of_rank(machine.settings.back()));
}

std::string to_text(const Advice& advice, const PlanOptions& options) {
  std::vector<std::string> lines{fmt::format("{}, mini-batch {}, {} on {}", model_title(advice.config.model),
                                             advice.config.train.batch_size, advice.config.train.precision,
                                             advice.machine.name)};
  const RankAdvice* first = nullptr;
  for (const RankAdvice& each : advice.strong) {
    lines.push_back(fmt::format("\n{} rank(s):", each.ranks));
    lines.push_back(grid_table(each, options.all));
    const GridPrice* best = each.best();
    if (best == nullptr) {
      lines.emplace_back("  no grid fits");
      continue;
    }
    if (first == nullptr) first = &each;
    const double speed_up = first->best()->cost.step.seconds() / best->cost.step.seconds();
    const double efficiency = speed_up * static_cast<double>(first->ranks) / static_cast<double>(each.ranks);
    lines.push_back(fmt::format(
        "* best: {:.4g} s, {:.2f} times as fast as {} rank(s), efficiency {:.0f} %{}", best->cost.step.seconds(),
        speed_up, first->ranks, 100 * efficiency,
        best->cost.step.interpolated > 0.005
            ? fmt::format("; {:.0f} % of the computing interpolated, not measured", 100 * best->cost.step.interpolated)
            : ""));
  }
  const double paper = advice.memory_factor * advice.paper.memory_bytes;
  lines.push_back(fmt::format("\nThe paper's accounting: {} a sample, {} rank(s) of {} at least (powers of two)",
                              format_bytes(paper), paper_ranks(paper, rank_memory(advice.machine)),
                              format_bytes(rank_memory(advice.machine))));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

nlohmann::ordered_json to_json(const RankAdvice& advice) {
  nlohmann::ordered_json grids = nlohmann::ordered_json::array();
  for (const GridPrice& price : advice.grids) {
    if (!price.refused.empty()) {
      grids.push_back({{"grid", price.grid.spatial_name()}, {"refused", price.refused}});
      continue;
    }
    nlohmann::ordered_json grid{{"grid", price.grid.spatial_name()},
                                {"groups", price.grid.data},
                                {"fits", price.fits},
                                {"best", price.fits && &price == &advice.grids.front()},
                                {"memory_bytes", price.cost.memory_bytes}};
    grid.update(to_json(price.cost.step));
    grid["samples_per_second"] = samples_per_second(advice, price);
    grids.push_back(std::move(grid));
  }
  return {{"ranks", advice.ranks}, {"batch", advice.batch}, {"grids", std::move(grids)}};
}

nlohmann::ordered_json to_json(const Advice& advice) {
  const double paper = advice.memory_factor * advice.paper.memory_bytes;
  nlohmann::ordered_json json{{"model", advice.config.model.name},
                              {"width", advice.config.model.width},
                              {"batch_norm", advice.config.model.batch_norm},
                              {"batch", advice.config.train.batch_size},
                              {"precision", advice.config.train.precision},
                              {"device", backend_name(advice.machine.backend)},
                              {"machine", advice.machine.name},
                              {"paper_memory_bytes", paper},
                              {"paper_ranks_per_sample", paper_ranks(paper, rank_memory(advice.machine))},
                              {"plans", nlohmann::ordered_json::array()}};
  for (const RankAdvice& each : advice.strong) json["plans"].push_back(to_json(each));
  return json;
}

ScalingSeries series_of(const std::string& title, const std::vector<RankAdvice>& advice) {
  ScalingSeries series{.title = title, .points = {}};
  for (const RankAdvice& each : advice) {
    if (each.best() == nullptr) continue;
    series.points.push_back({.ranks = each.ranks,
                             .grid = grid_name(each.best()->grid),
                             .batch = each.batch,
                             .predicted = each.best()->cost.step,
                             .measured_seconds = {}});
  }
  return series;
}

void write_chart(const Advice& advice, const std::string& file) {
  std::vector<ScalingSeries> series{
      series_of(fmt::format("Strong scaling, mini-batch {}", advice.config.train.batch_size), advice.strong)};
  if (!advice.weak.empty())
    series.push_back(series_of("Weak scaling, the mini-batch grows with the ranks", advice.weak));
  std::erase_if(series, [](const ScalingSeries& each) { return each.points.empty(); });
  write_text(file,
             scaling_chart(fmt::format("{} on {}", model_title(advice.config.model), advice.machine.name), series));
}

void plan(const Communicator& world, const PlanOptions& options) {
  const bool draws = !options.chart.empty() && world.rank() == 0;
  if (draws) require_writable(options.chart);
  const Advice advice = advise(options);
  if (draws) write_chart(advice, options.chart);
  print(world, options.json ? to_json(advice).dump(2) : to_text(advice, options));
}

}  // namespace

void add_plan_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command =
      app.add_subcommand("plan", "Which grid, how much memory, how long a step: predicted for any number of ranks");
  const auto options = std::make_shared<PlanOptions>();
  add_network_options(*command, options->model);
  command->add_option("--machine", options->machine, "what `calibrate` wrote, or a file of machines/")->required();
  command->add_option("--change", options->changes, "/path/in/the/machine/file=number instead of what stands there");
  command->add_option("--ranks", options->ranks, "one or more, as 64,128,256")
      ->required()
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_option("--grid", options->grids, "only these, as 2x1x1,1x2x1 (default: all)")->delimiter(',');
  command->add_option("--ranks-on-node", options->setting.ranks_on_node, "(default: the most that were measured)");
  command->add_option("--threads", options->setting.threads, "of each rank (default: the most that were measured)");
  command->add_option("--chart", options->chart, "draws strong and weak scaling into this SVG file");
  command->add_flag("--all", options->all, "lists every grid");
  command->add_flag("--json", options->json, "one JSON object");
  command->callback([=] { plan(world, *options); });
}

}  // namespace halograd
