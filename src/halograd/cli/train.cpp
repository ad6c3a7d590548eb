#include "halograd/cli/commands.hpp"
#include "halograd/cli/config_options.hpp"
#include "halograd/cli/grid_choice.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/version.hpp"
#include "halograd/train/trainer.hpp"

#include <memory>

namespace halograd {
namespace {

struct TrainArguments {
  ConfigOptions config;
  std::string machine;  ///< for a grid "auto"
  TrainerOptions options;
};

void train(const Communicator& world, TrainArguments arguments) {
  const PlannedConfig planned = load_planned_config(world, arguments.config, arguments.machine);
  if (arguments.options.run_directory.empty()) {
    arguments.options.run_directory = RunDirectory::default_path(arguments.config.file);
  }
  arguments.options.version = version();
  Trainer trainer(world, planned.config, arguments.options);
  for (const std::string& reason : planned.reasons) log::info(reason);  // now that the run has its log
  trainer.run();
}

}  // namespace

void add_train_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("train", "Trains a network; one rank, or as many as mpirun starts");
  const auto arguments = std::make_shared<TrainArguments>();
  add_config_options(*command, arguments->config);
  command->add_option("--machine", arguments->machine, "with --grid auto: the machine file that `calibrate` wrote");
  command->add_option("--run-dir", arguments->options.run_directory,
                      "where results go (default: runs/<config's name>)");
  command->add_flag("--resume", arguments->options.resume, "goes on from the run's newest good checkpoint");
  command->add_option("--max-steps", arguments->options.max_steps, "ends the run after so many steps in all")
      ->check(CLI::NonNegativeNumber);
  command->callback([=] { train(world, *arguments); });
}

}  // namespace halograd
