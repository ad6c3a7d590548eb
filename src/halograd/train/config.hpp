#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halograd {

/// [model]: which network, and what it is built with.
struct ModelConfig {
  std::string name = "cosmoflow";
  std::int64_t width = 128;
  bool batch_norm = true;
  double dropout_keep = 0.8;  ///< 1 switches dropout off
  std::string pool = "average";
  std::int64_t pool_window = 3;
  double batch_norm_decay = 0.999;
  std::string norm = "batch";          ///< of the U-Net where batch_norm is true: or "instance", "group"
  std::int64_t channels = 1;           ///< of the U-Net's input
  std::int64_t classes = 3;            ///< it tells apart
  std::int64_t base_channels = 32;     ///< of its first convolution
  std::string loss = "cross_entropy";  ///< or "dice", "cross_entropy+dice"
  std::vector<double> class_weights;   ///< of the cross entropy; empty: all 1
  std::int64_t ignore_label = -1;      ///< voxels with it count nowhere; −1: none
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// [data]: the samples, and how they are split into train, validation and test.
struct DataConfig {
  std::string path = "data/universes";
  std::string format = "cosmoflow";
  std::string transform = "log1p";
  std::array<double, 2> intensity_window{-200, 300};  ///< of the transform "window": what becomes −1 and 1
  std::string augment_flip;                           ///< letters of "dhw": dimensions to flip; empty: none
  double augment_scale = 0;                           ///< training values times 1 ± up to this, once transformed
  double augment_shift = 0;                           ///< and ± up to this added to them
  std::array<double, 3> split{0.8, 0.1, 0.1};
  std::int64_t seed = 1;
  std::int64_t subvolume = 0;    ///< 0: a file's volume is a sample; else it is cut into cubes of this width
  std::string io = "hyperslab";  ///< or "sample": whole samples on one rank of a group, scattered (the baseline)
  std::string driver = "auto";   ///< of HDF5: or "posix", "mpi-independent", "mpi-collective"
  std::string store = "memory";  ///< where samples stay after their first epoch: or "disk", "off"
  std::string store_budget;      ///< memory of a rank, as "8GiB"; empty: what the node has free, shared out
  std::string store_dir;         ///< node-local, for what the memory does not hold; empty: the temporary directory
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

/// [train]: the optimisation and its checkpoints.
struct TrainConfig {
  std::int64_t epochs = 100;
  std::int64_t batch_size = 4;  ///< the global mini-batch
  double learning_rate = 1e-3;
  std::int64_t lr_decay_epochs = 100;
  double lr_final = 0.01;
  std::string optimizer = "adam";
  double momentum = 0.9;
  std::int64_t seed = 1;
  std::string precision = "f32";
  std::int64_t checkpoint_every_epochs = 1;
  std::int64_t checkpoint_every_steps = 0;
  std::int64_t checkpoints_kept = 3;
  std::string initial_checkpoint;  ///< empty: start from random weights
  bool log_samples = false;
  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

/// [parallel]: how the samples are split over the ranks.
struct ParallelConfig {
  std::string grid = "1x1x1";
  std::string batch_norm_statistics = "global";
  std::string device = "auto";
  std::string convolutions = "fast";  ///< or "direct": none that trade rounding for speed
  friend bool operator==(const ParallelConfig&, const ParallelConfig&) = default;
};

/// Everything a run is configured with; a fresh one holds the defaults.
struct Config {
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  ParallelConfig parallel;
  friend bool operator==(const Config&, const Config&) = default;
};

/// Reads a TOML file and then applies `overrides` ("table.key=value", in order; a value is TOML, a bare word is a
/// string). Keys not named keep their defaults. Throws UsageError naming the file, its line and the key at fault:
/// unknown tables and keys (with the nearest known name), wrong types, values out of range, what is not built yet.
Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides = {});

/// As load_config, from text; `source` stands for the file's name in errors.
Config parse_config(std::string_view text, std::string_view source, std::span<const std::string> overrides = {});

/// Applies one override "table.key=value". Throws UsageError as load_config does.
void apply_override(Config& config, std::string_view override_text);

/// Checks every value of a configuration made or changed in a program. Throws UsageError naming the first wrong key.
void validate(const Config& config);

/// The configuration as TOML, every key with its value and meaning, always in the same order; parse_config gives it
/// back.
std::string to_toml(const Config& config);

/// A key whose value is another one in another configuration.
struct ConfigDifference {
  std::string key;  ///< "train.epochs"
  std::string before;
  std::string after;
  [[nodiscard]] std::string text() const { return key + ": " + before + " -> " + after; }
};

/// The keys in which two configurations differ, in the order of to_toml.
std::vector<ConfigDifference> config_differences(const Config& before, const Config& after);

}  // namespace halograd
