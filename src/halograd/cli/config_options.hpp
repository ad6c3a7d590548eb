#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/train/config.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace halograd {

/// A configuration file and what the command line changes of it: what train, evaluate and predict share.
struct ConfigOptions {
  std::filesystem::path file;
  std::string grid;
  std::vector<std::string> overrides;
};

void add_config_options(CLI::App& command, ConfigOptions& options);

/// Collective. Throws as load_same_config.
Config load_config(const Communicator& world, const ConfigOptions& options);

}  // namespace halograd
