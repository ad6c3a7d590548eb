#pragma once

#include "halograd/train/config.hpp"

#include <filesystem>
#include <utility>

namespace halograd {

/// Whether a run begins, or goes on from its newest checkpoint (--resume).
enum class RunStart { fresh, resume };

/// The directory of one run: config.toml, metrics.jsonl, checkpoints/ and log.txt. On ranks other than 0 it only names
/// paths.
class RunDirectory {
public:
  /// runs/<stem of the configuration file>, where --run-dir is not given.
  static std::filesystem::path default_path(const std::filesystem::path& config_file);

  /// Whether `root` holds a run: a configuration, metrics or a checkpoint.
  static bool holds_run(const std::filesystem::path& root);

  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  /// Throws UsageError where `start` is fresh and a run is there, or resume and none is. Touches nothing.
  void check(RunStart start) const;

  /// Makes the directory, writes config.toml as used and sends the log to log.txt too. Rank 0 only, not collective:
  /// agree on a failure afterwards. Throws as check(); ResourceError naming the directory where it can't be written.
  void open(RunStart start, const Config& config) const;

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] std::filesystem::path config_file() const { return root_ / "config.toml"; }
  [[nodiscard]] std::filesystem::path metrics_file() const { return root_ / "metrics.jsonl"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  /// Which kernels were the fastest, where some were chosen by timing.
  [[nodiscard]] std::filesystem::path algorithms() const { return root_ / "algorithms.txt"; }
  [[nodiscard]] std::filesystem::path log_file() const { return root_ / "log.txt"; }

private:
  std::filesystem::path root_;
};

}  // namespace halograd
