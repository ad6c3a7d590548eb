#pragma once

#include "halograd/cli/config_options.hpp"

#include <string>
#include <vector>

namespace halograd {

struct PlannedConfig {
  Config config;
  std::vector<std::string> reasons;  ///< for the log: what the chosen grid costs, and what the next ones would
};

/// Collective. As load_config; where --grid says "auto", the planner chooses the grid for these ranks by the machine
/// file. Throws UsageError without a machine file, with one of another device than the run's, or where no grid fits.
PlannedConfig load_planned_config(const Communicator& world, const ConfigOptions& options, const std::string& machine);

}  // namespace halograd
