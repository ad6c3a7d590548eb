#include "halograd/cli/planned_model.hpp"

#include "halograd/cli/model_options.hpp"
#include "halograd/train/model.hpp"

#include <fmt/format.h>

namespace halograd {

PlanRequest plan_request(const Config& config) {
  Config whole = config;
  whole.parallel.grid = "1x1x1";  // the planner takes others than the configuration's
  const ExecutorOptions run = executor_options(whole, 1);
  return {.batch = config.train.batch_size,
          .scope = run.statistics,
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

std::string grid_name(const ProcessGrid& grid) {
  return grid.data == 1 ? grid.spatial_name() : fmt::format("{} × {}", grid.spatial_name(), grid.data);
}

}  // namespace halograd
