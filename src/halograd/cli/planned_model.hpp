#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/perf/planner.hpp"
#include "halograd/train/config.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace halograd {

/// What the planner is asked for a configuration.
PlanRequest plan_request(const Config& config);

/// The spatial grids named in `texts` ("2x1x1") on `ranks` ranks, those that divide them; none named: all.
std::vector<ProcessGrid> wanted_grids(const std::vector<std::string>& texts, std::int64_t ranks);

/// Collective. As load_machine, by rank 0, who tells the others: each node may have files of its own.
Machine load_same_machine(const Communicator& world, const std::string& file);

/// Collective. Likewise, for a run on `device`, which `option` chooses ("--device "). Throws UsageError too where the
/// file's figures are of another device.
Machine load_machine_for_run(const Communicator& world, const std::string& file, Backend device,
                             const std::string& option);

/// A step's parts as reports name them: "convolution_seconds", …
nlohmann::ordered_json to_json(const StepCost& step);
StepCost step_cost(const nlohmann::ordered_json& json);

/// "2x1x1", with several groups "2x1x1 × 4".
std::string grid_name(const ProcessGrid& grid);

/// Throws UsageError: what the grid of the least memory needs, what the machine has, and the nearest that would do.
[[noreturn]] void refuse_all_grids(const Config& config, const Machine& machine,
                                   const std::vector<GridPrice>& too_large, const PlanRequest& request);

}  // namespace halograd
