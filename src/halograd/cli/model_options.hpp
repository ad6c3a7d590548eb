#pragma once

#include "halograd/tensor/process_grid.hpp"
#include "halograd/train/config.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace halograd {

/// A network named on the command line, and how it is run: what `summary`, `plan` and `bench` share.
struct ModelOptions {
  std::string model;  ///< a model's name or a configuration file
  std::optional<std::int64_t> width;
  bool batch_norm = false;
  std::optional<std::string> pool;
  std::optional<std::string> grid;
  std::optional<std::int64_t> batch;
  std::optional<std::string> precision;
  std::optional<std::string> device;
};

/// All but grid and device; the device; all.
void add_network_options(CLI::App& command, ModelOptions& options);
void add_device_option(CLI::App& command, ModelOptions& options);
void add_model_options(CLI::App& command, ModelOptions& options);

/// A configuration for them: the file's, or the defaults (cosmoflow without batch normalisation) with train.batch_size
/// 0 (to be chosen by whoever asks), changed by what the options say. Throws UsageError.
Config config_of(const ModelOptions& options);

/// Validates `config` after `option` has changed it. Throws UsageError naming the option and its key.
void validate_option(const Config& config, const std::string& option);

/// The spatial grid "DxHxW" over `ranks` ranks, or over just as many as it has parts. Throws UsageError.
ProcessGrid grid_of(const std::string& text, std::optional<std::int64_t> ranks);

/// "cosmoflow, width 128, without batch norm, average pooling".
std::string model_title(const ModelConfig& model);

}  // namespace halograd
