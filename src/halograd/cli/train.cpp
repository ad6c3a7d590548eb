#include "halograd/cli/commands.hpp"
#include "halograd/core/version.hpp"
#include "halograd/train/trainer.hpp"

#include <memory>

namespace halograd {
namespace {

struct TrainArguments {
  std::filesystem::path config;
  std::string grid;
  TrainerOptions options;
  std::vector<std::string> overrides;
};

void train(const Communicator& world, TrainArguments arguments) {
  if (!arguments.grid.empty()) arguments.overrides.push_back("parallel.grid=" + arguments.grid);
  const Config config = load_same_config(world, arguments.config, arguments.overrides);
  if (arguments.options.run_directory.empty()) {
    arguments.options.run_directory = RunDirectory::default_path(arguments.config);
  }
  arguments.options.version = version();
  Trainer(world, config, arguments.options).run();
}

}  // namespace

void add_train_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("train", "Trains a network; one rank, or as many as mpirun starts");
  const auto arguments = std::make_shared<TrainArguments>();
  command->add_option("config", arguments->config, "the configuration, TOML")->required();
  command->add_option("--grid", arguments->grid, "DEPTHxHEIGHTxWIDTH parts of each sample (parallel.grid)");
  command->add_option("--run-dir", arguments->options.run_directory,
                      "where results go (default: runs/<config's name>)");
  command->add_flag("--resume", arguments->options.resume, "goes on from the run's newest good checkpoint");
  command->add_option("--max-steps", arguments->options.max_steps, "ends the run after so many steps in all")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--set", arguments->overrides, "table.key=value, in place of the file's; may be repeated");
  command->callback([=] { train(world, *arguments); });
}

}  // namespace halograd
