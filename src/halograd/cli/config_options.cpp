#include "halograd/cli/config_options.hpp"

#include "halograd/train/model.hpp"

namespace halograd {

void add_config_options(CLI::App& command, ConfigOptions& options) {
  command.add_option("config", options.file, "the configuration, TOML")->required();
  command.add_option("--grid", options.grid, "DEPTHxHEIGHTxWIDTH parts of each sample (parallel.grid)");
  command.add_option("--set", options.overrides, "table.key=value, in place of the file's; may be repeated");
}

Config load_config(const Communicator& world, const ConfigOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.grid.empty()) overrides.push_back("parallel.grid=" + options.grid);
  return load_same_config(world, options.file, overrides);
}

}  // namespace halograd
