#include "halograd/cli/planned_model.hpp"

#include "halograd/cli/model_options.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"
#include "halograd/train/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace halograd {

PlanRequest plan_request(const Config& config) {
  Config whole = config;
  whole.parallel.grid = "1x1x1";  // the planner takes others than the configuration's
  const ExecutorOptions run = executor_options(whole, 1);
  return {.batch = config.train.batch_size,
          .scope = run.statistics,
          .precision = run.precision,
          .direct_convolutions = run.direct_convolutions,
          .price = {.optimizer_slots = optimizer_slots(run.optimizer.kind)}};
}

std::vector<ProcessGrid> wanted_grids(const std::vector<std::string>& texts, std::int64_t ranks) {
  if (texts.empty()) return all_grids(ranks);
  std::vector<ProcessGrid> grids;
  for (const std::string& text : texts) {
    const std::int64_t parts = grid_of(text, std::nullopt).size();
    if (ranks % parts == 0) grids.push_back(ProcessGrid::parse(text, ranks));
  }
  return grids;
}

Machine load_same_machine(const Communicator& world, const std::string& file) {
  std::string text;
  agree(world, [&] {
    if (world.rank() == 0) text = to_json(load_machine(file)).dump();
  });
  return machine_from_json(nlohmann::ordered_json::parse(world.all_gather(text).front()));
}

Machine load_machine_for_run(const Communicator& world, const std::string& file, Backend device,
                             const std::string& option) {
  Machine machine = load_same_machine(world, file);
  if (machine.backend == device) return machine;
  const char* const other = backend_name(machine.backend);
  const std::string own = backend_name(device);
  throw UsageError("{} has figures of device {}, but this run computes on {}: take {}{}{}", file, other, own, option,
                   other, device == Backend::reference ? "" : ", or a machine file of device " + own);
}

namespace {

struct NamedPart {
  const char* name;
  double StepCost::*part;
};
constexpr std::array<NamedPart, 8> step_parts{{{"convolution_seconds", &StepCost::convolution_seconds},
                                               {"other_seconds", &StepCost::other_seconds},
                                               {"halo_seconds", &StepCost::halo_seconds},
                                               {"statistics_seconds", &StepCost::statistics_seconds},
                                               {"gradient_seconds", &StepCost::gradient_seconds},
                                               {"data_seconds", &StepCost::data_seconds},
                                               {"hidden_seconds", &StepCost::hidden_seconds},
                                               {"interpolated", &StepCost::interpolated}}};

}  // namespace

nlohmann::ordered_json to_json(const StepCost& step) {
  nlohmann::ordered_json json{{"step_seconds", step.seconds()}};
  for (const NamedPart& each : step_parts) json[each.name] = step.*each.part;
  return json;
}

StepCost step_cost(const nlohmann::ordered_json& json) {
  StepCost step;
  for (const NamedPart& each : step_parts) step.*each.part = json.at(each.name).get<double>();
  return step;
}

std::string grid_name(const ProcessGrid& grid) {
  return grid.data == 1 ? grid.spatial_name() : fmt::format("{} × {}", grid.spatial_name(), grid.data);
}

void refuse_all_grids(const Config& config, const Machine& machine, const std::vector<GridPrice>& too_large,
                      const PlanRequest& request) {
  const GridPrice& least =
      *std::ranges::min_element(too_large, {}, [](const GridPrice& price) { return price.cost.memory_bytes; });
  const std::int64_t ranks = least.grid.size();
  const std::int64_t room = machine.memory_of_rank(machine.setting_for(ranks, request.price.setting));
  const auto nearest = nearest_that_fits(build_network(config.model), machine, ranks, request);
  std::string advice = nearest ? fmt::format("grid {} of {} rank(s) would do", grid_name(*nearest), nearest->size())
                               : "more ranks would not make it small enough";
  if (request.batch > least.grid.data) {
    advice += nearest ? ", or a smaller mini-batch" : "; try a smaller mini-batch";
  }
  throw UsageError("no grid fits: {} of {} rank(s) needs the least, {} on a rank, and the machine has {}; {}",
                   grid_name(least.grid), ranks, format_bytes(static_cast<double>(least.cost.memory_bytes)),
                   format_bytes(static_cast<double>(room)), advice);
}

}  // namespace halograd
