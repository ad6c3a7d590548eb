#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// The event "run": what a run is made of.
struct RunMetrics {
  std::string version;
  std::int64_t ranks = 1;
  std::string grid = "1x1x1";
  std::int64_t data_groups = 1;
  std::int64_t threads = 1;  ///< of each rank
  std::int64_t parameters = 0;
  std::int64_t arena_bytes = 0;  ///< of the largest rank
};

/// The event "step".
struct StepMetrics {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< from 0 over the whole run
  double loss = 0;        ///< global mean
  double learning_rate = 0;
  double seconds = 0;
  double io_seconds = 0;    ///< that compute waited for samples
  double comm_seconds = 0;  ///< that compute waited for other ranks
  std::int64_t samples = 0;
  std::optional<std::vector<std::string>> files{};  ///< the mini-batch in order, with train.log_samples
};

/// The event "epoch".
struct EpochMetrics {
  std::int64_t epoch = 0;
  double train_loss = 0;
  double validation_loss = 0;  ///< written as null where not finite (no validation samples)
  double seconds = 0;
  double samples_per_second = 0;
  std::int64_t file_bytes = 0;    ///< of voxels that all ranks read from files, validation's too; 0 with a warm store
  nlohmann::ordered_json dice{};  ///< by class, on validation; null: the network does not segment
};

/// How far a resumed run has come: steps from `step` on and epochs from `epoch` on are yet to be done.
struct MetricsCut {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
};

/// Writes metrics.jsonl, one object a line, handed to the operating system as written; doubles read back as the same
/// bits, a value that is not finite is null. Belongs to rank 0. Every write throws ResourceError where the disk is full
/// or gone.
class MetricsLog {
public:
  /// Starts an empty file.
  static MetricsLog create(const std::filesystem::path& file);

  /// Goes on with the file of an interrupted run: drops (atomically) the steps and epochs from `cut` on, a "test"
  /// event, and a last line that is torn. A missing file is started anew, with a warning.
  static MetricsLog resume(const std::filesystem::path& file, const MetricsCut& cut);

  MetricsLog(MetricsLog&& other) noexcept;
  MetricsLog& operator=(MetricsLog&&) = delete;
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;
  ~MetricsLog();

  /// Writes the event "run", once a file: after a resume that kept it, does nothing.
  void write(const RunMetrics& run);
  void write(const StepMetrics& step);
  void write(const EpochMetrics& epoch);

  /// Writes {"event":"test", …} with the members of `metrics`, the loss among them, in their order.
  void write_test(const nlohmann::ordered_json& metrics);

  /// Waits until everything written is on the disk; call it before a checkpoint, whose metrics must not be lost.
  void sync();

private:
  MetricsLog(const std::filesystem::path& file, bool truncate);
  void write_line(const nlohmann::ordered_json& event);

  std::filesystem::path file_;
  int descriptor_ = -1;
  bool has_run_ = false;
};

}  // namespace halograd
