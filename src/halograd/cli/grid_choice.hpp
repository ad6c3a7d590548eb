#pragma once

#include "halograd/cli/config_options.hpp"

#include <string>

namespace halograd {

/// Collective. As load_config; where --grid says "auto", the planner chooses the grid for these ranks by the machine
/// file, and the log says why. Throws UsageError without a machine file, or where no grid fits.
Config load_planned_config(const Communicator& world, const ConfigOptions& options, const std::string& machine);

}  // namespace halograd
