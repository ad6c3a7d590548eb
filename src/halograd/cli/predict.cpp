#include "halograd/cli/predict.hpp"

#include "halograd/cli/commands.hpp"
#include "halograd/core/error.hpp"
#include "halograd/train/model.hpp"

#include <memory>
#include <system_error>

namespace halograd {
namespace {

/// Finds out before the work what would be found out after it.
void check_target(const std::filesystem::path& file, const std::filesystem::path& input) {
  std::error_code code;
  if (std::filesystem::equivalent(file, input, code)) {
    throw UsageError("{}: is the input; expected another file to write to", file.string());
  }
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(directory, code)) {
    throw ResourceError("cannot write {}: {} is no directory", file.string(), directory.string());
  }
}

void run_predict(const Communicator& world, const PredictArguments& arguments) {
  const Config config = load_config(world, arguments.config);
  const Network network = build_network(config.model);
  const bool segments = std::holds_alternative<SegmentationLoss>(network.nodes().back().layer);
  if (!segments && !arguments.preview.empty()) {
    throw UsageError("--preview: {} predicts no labels to look at; expected a model that segments, as unet3d",
                     config.model.name);
  }
  agree(world, [&] {
    if (world.rank() != 0) return;
    check_target(arguments.output, arguments.input);
    if (!arguments.preview.empty()) check_target(arguments.preview, arguments.input);
  });
  (segments ? predict_segmentation : predict_universe)(world, config, network, arguments);
}

}  // namespace

void add_predict_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command =
      app.add_subcommand("predict", "Predicts the parameters of one universe, or the labels of one scan");
  const auto arguments = std::make_shared<PredictArguments>();
  add_config_options(*command, arguments->config);
  command->add_option("--checkpoint", arguments->checkpoint, "the weights, HDF5")->required();
  command
      ->add_option("--input", arguments->input, "the universe, HDF5, or the scan, .nii, .nii.gz or a converted .hdf5")
      ->required();
  command->add_option("--output", arguments->output, "where the prediction goes, JSON, or of a scan .nii or .nii.gz")
      ->required();
  command->add_option("--preview", arguments->preview, "a picture of the scan with its labels, .png");
  command->callback([=] { run_predict(world, *arguments); });
}

}  // namespace halograd
