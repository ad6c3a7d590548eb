#include "halograd/cli/bench_scaling.hpp"

#include "halograd/cli/bench_step.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/cli/planned_model.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/exec/choose_device.hpp"
#include "halograd/perf/scaling_chart.hpp"
#include "halograd/train/model.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace halograd {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::int64_t> rank_counts(int size) {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 1; count < size; count *= 2) counts.push_back(count);
  counts.push_back(size);
  return counts;
}

/// Ranks are taken to share a node. What is asked for, else the planner's best, else samples cut in depth.
ProcessGrid grid_for(const BenchScalingOptions& options, const std::optional<Machine>& machine, Config config,
                     std::int64_t ranks, std::int64_t batch) {
  config.train.batch_size = batch;
  if (!options.grids.empty()) {
    const std::vector<ProcessGrid> grids = wanted_grids(options.grids, ranks);
    if (grids.empty())
      throw UsageError("--grid names none that divides {} rank(s): it must name one for each of 1, 2, 4 … ranks",
                       ranks);
    return std::ranges::max(grids, {}, &ProcessGrid::spatial_size);
  }
  if (machine) {
    PlanRequest request = plan_request(config);
    request.price.setting = {.ranks_on_node = ranks, .threads = thread_count()};
    const auto prices = price_grids(build_network(config.model), *machine, all_grids(ranks), request);
    if (!prices.empty() && !prices.front().refused.empty()) {
      throw UsageError("{}: no step on {} rank(s) can be predicted: {}", options.machine, ranks,
                       prices.front().refused);
    }
    if (!prices.empty()) return prices.front().grid;
  }
  return {.data = 1, .depth = ranks};
}

/// So many of the ranks, with a mini-batch, on a grid.
struct Run {
  ProcessGrid grid;
  std::int64_t batch = 1;
};

/// The first ranks measure; what they found is then known to all.
Json measure(const Communicator& world, const BenchScalingOptions& options, const Run& run) {
  const auto& [grid, batch] = run;
  const std::int64_t ranks = grid.size();
  const bool takes_part = world.rank() < ranks;
  const Communicator part = world.split(takes_part ? 0 : 1, world.rank());
  Json point;
  if (takes_part) {
    log::info("{} rank(s), mini-batch {}, grid {}", ranks, batch, grid_name(grid));
    BenchStepOptions step{.model = options.model, .steps = options.steps, .floor = false, .machine = options.machine};
    step.model.grid = grid.spatial_name();
    step.model.batch = batch;
    const Json report = bench_step(part, step);
    point = {{"ranks", ranks},
             {"grid", grid.spatial_name()},
             {"groups", grid.data},
             {"batch", batch},
             {"step_seconds", report.at("step_seconds")},
             {"samples_per_second", static_cast<double>(batch) / report.at("step_seconds").get<double>()},
             {"peak_rss_bytes", report.at("peak_rss_bytes")}};
    if (report.contains("predicted")) point["predicted"] = report.at("predicted");
  }
  return Json::parse(world.all_gather(point.dump()).front());
}

std::string grid_text(const Json& point) {
  return grid_name(ProcessGrid::parse(point.at("grid").get<std::string>(), point.at("ranks").get<std::int64_t>()));
}

ScalingSeries series_of(const std::string& title, const Json& points) {
  ScalingSeries series{.title = title, .points = {}};
  for (const Json& point : points) {
    ScalingPoint bar{.ranks = point.at("ranks").get<std::int64_t>(),
                     .grid = grid_text(point),
                     .batch = point.at("batch").get<std::int64_t>(),
                     .predicted = {},
                     .measured_seconds = point.at("step_seconds").get<double>()};
    if (point.contains("predicted")) bar.predicted = step_cost(point.at("predicted"));
    series.points.push_back(std::move(bar));
  }
  return series;
}

}  // namespace

Json bench_scaling(const Communicator& world, const BenchScalingOptions& options) {
  const Config config = config_of(options.model);
  const std::vector<std::int64_t> counts = rank_counts(world.size());
  const std::int64_t batch = config.train.batch_size > 0 ? config.train.batch_size : 1;
  std::optional<Machine> machine;
  if (!options.machine.empty()) {
    const Backend device = choose_backend(config.parallel.device, world);
    machine = load_machine_for_run(world, options.machine, device, "--device ");
  }
  std::vector<Run> strong;
  std::vector<Run> weak;
  agree(world, [&] {  // before the first is measured, so that what is wrong with the last is said at once
    if (!options.chart.empty() && world.rank() == 0) require_writable(options.chart);
    if (options.steps < 0) throw UsageError("--steps is {}; it must not be negative", options.steps);
    for (const std::int64_t ranks : counts) {
      strong.push_back({grid_for(options, machine, config, ranks, batch), batch});
      weak.push_back({grid_for(options, machine, config, ranks, batch * ranks), batch * ranks});
    }
  });
  Json report{
      {"model", config.model.name}, {"width", config.model.width}, {"strong", Json::array()}, {"weak", Json::array()}};
  for (const Run& run : strong) report["strong"].push_back(measure(world, options, run));
  for (const Run& run : weak) report["weak"].push_back(measure(world, options, run));
  if (!options.chart.empty() && world.rank() == 0) {
    write_text(options.chart,
               scaling_chart(model_title(config.model),
                             {series_of(fmt::format("Strong scaling, mini-batch {}", batch), report["strong"]),
                              series_of("Weak scaling, the mini-batch grows with the ranks", report["weak"])}));
  }
  return report;
}

std::string bench_scaling_table(const Json& report) {
  std::vector<std::vector<std::string>> rows{{"scaling", "ranks", "grid", "mini-batch", "step s", "predicted s",
                                              "error", "samples/s", "speed-up", "efficiency"}};
  for (const char* const kind : {"strong", "weak"}) {
    const double first = report.at(kind).front().at("samples_per_second").get<double>();
    for (const Json& point : report.at(kind)) {
      const auto measured = point.at("step_seconds").get<double>();
      const auto ranks = point.at("ranks").get<std::int64_t>();
      const double speed = point.at("samples_per_second").get<double>();
      const double predicted = point.contains("predicted") ? point.at("predicted").at("step_seconds").get<double>() : 0;
      rows.push_back({kind, fmt::to_string(ranks), grid_text(point),
                      fmt::to_string(point.at("batch").get<std::int64_t>()), fmt::format("{:.4f}", measured),
                      predicted > 0 ? fmt::format("{:.4f}", predicted) : "",
                      predicted > 0 ? fmt::format("{:+.1f} %", 100 * (predicted / measured - 1)) : "",
                      fmt::format("{:.4g}", speed), fmt::format("{:.2f}", speed / first),
                      fmt::format("{:.0f} %", 100 * speed / first / static_cast<double>(ranks))});
    }
  }
  return format_table(rows, {false, true, false, true, true, true, true, true, true, true});
}

}  // namespace halograd
