#pragma once

#include "halograd/cli/config_options.hpp"
#include "halograd/nn/network.hpp"

#include <filesystem>

namespace halograd {

struct PredictArguments {
  ConfigOptions config;
  std::filesystem::path checkpoint;
  std::filesystem::path input;
  std::filesystem::path output;
  std::filesystem::path preview;  ///< of a segmentation; empty: none
};

/// Collective. Predicts the parameters of the one universe that the input holds, and writes them as JSON. Throws on all
/// ranks alike.
void predict_universe(const Communicator& world, const Config& config, const Network& network,
                      const PredictArguments& arguments);

/// Collective. Predicts a label for each voxel of the input, a NIfTI image or a converted case, and writes them as
/// NIfTI in the image's own shape, voxel order and geometry; a picture of them where it is wanted. Throws on all ranks
/// alike.
void predict_segmentation(const Communicator& world, const Config& config, const Network& network,
                          const PredictArguments& arguments);

}  // namespace halograd
