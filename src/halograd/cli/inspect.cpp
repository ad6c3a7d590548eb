#include "halograd/cli/commands.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/data/hdf5_describe.hpp"
#include "halograd/data/label_counts.hpp"
#include "halograd/train/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <sstream>

namespace halograd {
namespace {

std::string state_text(const CheckpointState& state) {
  std::vector<std::string> lines{
      fmt::format("checkpoint of HaloGrad {}", state.version.empty() ? "(version not told)" : state.version),
      fmt::format("  epoch {}, mini-batch {} of it, step {} of the run", state.epoch, state.batch, state.step),
      fmt::format("  optimizer steps {}, seed {}", state.optimizer_steps, state.seed)};
  if (std::isfinite(state.best_validation_loss)) {
    lines.push_back(fmt::format("  best validation loss {:.6g}", state.best_validation_loss));
  }
  for (const auto& [name, value] : state.counters) lines.push_back(fmt::format("  {} = {}", name, value));
  for (const auto& [name, value] : state.values) lines.push_back(fmt::format("  {} = {:.6g}", name, value));
  if (!state.config.empty()) lines.push_back("  configuration");
  std::istringstream config(state.config);
  for (std::string line; std::getline(config, line);) lines.push_back(line.empty() ? "" : "    " + line);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string inspect(const std::string& file) {
  std::vector<std::string> parts;
  const std::vector<Hdf5Item> items = describe_hdf5(file);
  if (is_checkpoint(file)) parts.push_back(state_text(read_checkpoint_state(file)) + '\n');
  for (const Hdf5Item& item : items) parts.push_back(to_text(item));
  if (const auto counts = count_labels(file)) parts.push_back(to_text(*counts));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

void add_inspect_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("inspect", "What a data file or checkpoint holds");
  const auto file = std::make_shared<std::string>();
  command->add_option("file", *file, "an HDF5 file")->required();
  command->callback([=] {
    agree(world, [&] {
      if (world.rank() == 0) print(world, inspect(*file));
    });
  });
}

}  // namespace halograd
