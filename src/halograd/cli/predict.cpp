#include "halograd/cli/commands.hpp"
#include "halograd/cli/config_options.hpp"
#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/data/hyperslab.hpp"
#include "halograd/data/hyperslab_reader.hpp"
#include "halograd/data/input_conversion.hpp"
#include "halograd/train/model.hpp"

#include <nlohmann/json.hpp>

#include <memory>

namespace halograd {
namespace {

struct PredictArguments {
  ConfigOptions config;
  std::filesystem::path checkpoint;
  std::filesystem::path input;
  std::filesystem::path output;
};

/// Reads this rank's hyperslab of the one sample that `file` holds into the network's input.
void read_input(Executor& executor, const InputUnit& input, const std::string& file, const DataConfig& data) {
  const FileContents contents =
      inspect_file(file, {.shape = input.shape, .prediction = true, .format = file_format(data.format)});
  if (contents.layout.image.entries != 1) {
    throw DataError("{}: holds {} samples; expected a file of one to predict from", file,
                    contents.layout.image.entries);
  }
  const SampleLayout layout = contents.layout.sample();
  std::vector<std::byte> voxels(static_cast<std::size_t>(hyperslab_bytes(layout, input.shape.channels, input.own)));
  HyperslabReader(Communicator::self(), ReadDriver::posix).read({file, contents.layout}, input.own, voxels.data());
  convert_sample({.backend = executor.options().backend,
                  .transform = value_transform(data),
                  .channels = input.shape.channels,
                  .own = input.own,
                  .tile = input.tile.box},
                 {.layout = contents.layout, .scale = contents.scale, .file = file}, voxels.data(),
                 executor.input_slot(0));
}

void run_predict(const Communicator& world, const PredictArguments& arguments) {
  const Config config = load_config(world, arguments.config);
  Executor executor(build_network(config.model), world, executor_options(config, world.size()));
  load_weights(executor, arguments.checkpoint);
  // A mini-batch of one: the first group has it, the others go along without a sample.
  const Plan& plan = executor.prepare(Mode::predict, 1);
  agree(world, [&] {
    if (plan.samples.count == 0) return;
    read_input(executor, plan.input, arguments.input.string(), config.data);
  });
  MiniBatch batch{.size = 1};
  batch.samples.resize(static_cast<std::size_t>(plan.samples.count));
  executor.predict(batch);
  agree(world, [&] {
    if (world.rank() != 0) return;
    const std::span<const float> values = executor.output();
    const nlohmann::ordered_json result{{"input", arguments.input.string()},
                                        {"checkpoint", arguments.checkpoint.string()},
                                        {"prediction", std::vector<float>(values.begin(), values.end())},
                                        {"parameters", cosmology_parameters},
                                        {"units", "scaled to [-1, 1], as unitPar"}};
    write_durably(arguments.output, result.dump(2) + "\n");
    log::info("prediction in {}", arguments.output.string());
  });
}

}  // namespace

void add_predict_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("predict", "Predicts the parameters of one universe");
  const auto arguments = std::make_shared<PredictArguments>();
  add_config_options(*command, arguments->config);
  command->add_option("--checkpoint", arguments->checkpoint, "the weights, HDF5")->required();
  command->add_option("--input", arguments->input, "the universe, HDF5")->required();
  command->add_option("--output", arguments->output, "where the prediction goes, JSON")->required();
  command->callback([=] { run_predict(world, *arguments); });
}

}  // namespace halograd
