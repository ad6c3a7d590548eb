#include "halograd/cli/model_options.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace halograd {
namespace {

constexpr std::int64_t most_ranks = std::int64_t{1} << 20;

bool names_file(const std::string& model) {
  return model.ends_with(".toml") || model.find('/') != std::string::npos || std::filesystem::exists(model);
}

template <typename T>
void apply(Config& config, const char* option, T& key, const T& value) {
  key = value;
  validate_option(config, option);
}

Config named_model(const std::string& model) {
  Config config;
  if (model != "cosmoflow" && model != "unet3d") {
    throw UsageError("unknown model {}; there are cosmoflow and unet3d, or name a configuration file (.toml)", model);
  }
  config.model.name = model;
  const bool unet = model == "unet3d";  // always with batch norm, as published
  config.model.batch_norm = unet;
  if (unet) config.data.format = "lits";
  config.train.batch_size = 1;
  return config;
}

}  // namespace

void validate_option(const Config& config, const std::string& option) {
  try {
    validate(config);
  } catch (const UsageError& error) {
    throw UsageError("{}: {}", option, error.what());
  }
}

void add_network_options(CLI::App& command, ModelOptions& options) {
  command.add_option("model", options.model, "cosmoflow, unet3d, or a configuration file (.toml)")->required();
  command.add_option("--width", options.width, "voxels along each side of a sample (default: 128)");
  command.add_flag("--batch-norm", options.batch_norm, "batch normalisation behind every convolution");
  command.add_option("--pool", options.pool, "average or max (default: average)");
  command.add_option("--batch", options.batch, "the global mini-batch (default: one sample a data-parallel group)");
  command.add_option("--precision", options.precision, "f32 (default), bf16, or tf32 (GPUs only)");
}

void add_device_option(CLI::App& command, ModelOptions& options) {
  command.add_option("--device", options.device, "auto (default: GPUs where there are any), cuda, cpu, or reference");
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  add_network_options(command, options);
  command.add_option("--grid", options.grid, "parts of a sample in depth, height and width (default: 1x1x1)");
  add_device_option(command, options);
}

Config config_of(const ModelOptions& options) {
  const bool file = names_file(options.model);
  Config config = file ? load_config(options.model) : named_model(options.model);
  if (options.width) apply(config, "--width", config.model.width, *options.width);
  if (options.batch_norm) config.model.batch_norm = true;
  if (options.pool) apply(config, "--pool", config.model.pool, *options.pool);
  if (options.grid) apply(config, "--grid", config.parallel.grid, *options.grid);
  if (options.batch) apply(config, "--batch", config.train.batch_size, *options.batch);
  if (options.precision) apply(config, "--precision", config.train.precision, *options.precision);
  if (options.device) apply(config, "--device", config.parallel.device, *options.device);
  if (!file && !options.batch) config.train.batch_size = 0;
  return config;
}

ProcessGrid grid_of(const std::string& text, std::optional<std::int64_t> ranks) {
  if (ranks && (*ranks < 1 || *ranks > most_ranks)) {
    throw UsageError("--ranks is {}; it must be 1 to {}", *ranks, most_ranks);
  }
  if (ranks) return ProcessGrid::parse(text, *ranks);
  std::istringstream parts(text);
  Extent grid;
  char x = 0;
  parts >> grid.d >> x >> grid.h >> x >> grid.w;
  const bool numbers = parts && std::min({grid.d, grid.h, grid.w}) >= 1;
  if (!numbers) throw UsageError("grid '{}' must be DEPTHxHEIGHTxWIDTH, as 2x1x1", text);
  for (int i = 0; i < 3; ++i) {
    if (grid[i] > most_ranks) throw UsageError("grid {}: no part may be above {}", text, most_ranks);
  }
  if (grid.volume() > most_ranks) throw UsageError("grid {} has more than {} parts", text, most_ranks);
  return ProcessGrid::parse(text, grid.volume());
}

std::string model_title(const ModelConfig& model) {
  if (model.name == "unet3d") {
    return fmt::format("{}, width {}, {} channels in, {} classes, {} norm", model.name, model.width, model.channels,
                       model.classes, model.batch_norm ? model.norm : "no");
  }
  return fmt::format("{}, width {}, {} batch norm, {} pooling", model.name, model.width,
                     model.batch_norm ? "with" : "without", model.pool);
}

}  // namespace halograd
