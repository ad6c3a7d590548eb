#include "halograd/cli/commands.hpp"
#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/data/hdf5_source.hpp"
#include "halograd/train/model.hpp"

#include <nlohmann/json.hpp>

#include <memory>

namespace halograd {
namespace {

struct PredictArguments {
  std::filesystem::path config;
  std::filesystem::path checkpoint;
  std::filesystem::path input;
  std::filesystem::path output;
  std::string grid;
  std::vector<std::string> overrides;
};

void run_predict(const Communicator& world, PredictArguments arguments) {
  if (!arguments.grid.empty()) arguments.overrides.push_back("parallel.grid=" + arguments.grid);
  const Config config = load_same_config(world, arguments.config, arguments.overrides);
  Executor executor(build_network(config.model), world, executor_options(config, world.size()));
  load_weights(executor, arguments.checkpoint);
  // A mini-batch of one: the first group has it, the others go along without a sample.
  const Plan& plan = executor.prepare(Mode::predict, 1);
  RawSample sample;
  agree(world, [&] {
    if (plan.samples.count == 0) return;
    const Hdf5Source source({.shape = executor.network().input(), .targets_required = false});
    source.read(arguments.input.string(), plan.input.own, sample);
    check_transform(sample, input_transform(config.data));
  });
  MiniBatch batch{.size = 1, .transform = input_transform(config.data)};
  if (plan.samples.count > 0) {
    batch.samples.push_back({sample.voxels.data(), sample.layout.dtype, sample.layout.channels_first, sample.file});
  }
  executor.predict(batch);
  agree(world, [&] {
    if (world.rank() != 0) return;
    const std::span<const float> values = executor.output();
    const nlohmann::ordered_json result{{"input", arguments.input.string()},
                                        {"checkpoint", arguments.checkpoint.string()},
                                        {"prediction", std::vector<float>(values.begin(), values.end())},
                                        {"parameters", {"omega_m", "sigma_8", "n_s", "h_0"}},
                                        {"units", "scaled to [-1, 1], as unitPar"}};
    write_durably(arguments.output, result.dump(2) + "\n");
    log::info("prediction in {}", arguments.output.string());
  });
}

}  // namespace

void add_predict_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("predict", "Predicts the parameters of one universe");
  const auto arguments = std::make_shared<PredictArguments>();
  command->add_option("config", arguments->config, "the configuration, TOML")->required();
  command->add_option("--checkpoint", arguments->checkpoint, "the weights, HDF5")->required();
  command->add_option("--input", arguments->input, "the universe, HDF5")->required();
  command->add_option("--output", arguments->output, "where the prediction goes, JSON")->required();
  command->add_option("--grid", arguments->grid, "DEPTHxHEIGHTxWIDTH parts of the sample (parallel.grid)");
  command->add_option("--set", arguments->overrides, "table.key=value, in place of the file's; may be repeated");
  command->callback([=] { run_predict(world, *arguments); });
}

}  // namespace halograd
