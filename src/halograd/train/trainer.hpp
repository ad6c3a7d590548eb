#pragma once

#include "halograd/core/error.hpp"
#include "halograd/data/dataset.hpp"
#include "halograd/train/batch_feed.hpp"
#include "halograd/train/checkpoint_store.hpp"
#include "halograd/train/config.hpp"
#include "halograd/train/evaluation.hpp"
#include "halograd/train/metrics.hpp"
#include "halograd/train/model.hpp"
#include "halograd/train/progress.hpp"
#include "halograd/train/run_directory.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace halograd {

struct TrainerOptions {
  std::filesystem::path run_directory;
  bool resume = false;
  std::optional<std::int64_t> max_steps;  ///< of the whole run; 0 writes just the first checkpoint
  std::string version;                    ///< written into metrics and checkpoints
};

/// A training run: epochs of steps, validation, metrics and checkpoints in its run directory. Everything is collective
/// over `world`; files are rank 0's.
class Trainer {
public:
  /// Opens the data, places the network and, with `resume`, reads the newest good checkpoint. Throws UsageError,
  /// DataError or ResourceError on all ranks alike, before anything but the run directory is written.
  Trainer(const Communicator& world, const Config& config, const TrainerOptions& options);

  /// Runs to the end (or max_steps). Throws NumericalError where the loss stops being finite: the last good checkpoint
  /// stays.
  void run();

private:
  void open_run();
  std::string load_beginning(const std::string& checkpoint);
  void load_state(const std::string& file);
  void open_feed();
  void begin_metrics(std::int64_t arena_bytes);
  void run_epoch();
  void run_step();
  void finish_epoch();
  void finish_run();
  void write_checkpoint(bool best);
  [[nodiscard]] NumericalError not_finite(const std::string& what, double value) const;
  [[nodiscard]] NumericalError not_finite(const std::string& what, const char* value) const;
  void set_aside_untried();
  [[nodiscard]] bool done() const;
  [[nodiscard]] RunStart start() const { return options_.resume ? RunStart::resume : RunStart::fresh; }
  [[nodiscard]] std::int64_t samples_in(Split split) const {
    return static_cast<std::int64_t>(dataset_.samples(split).size());
  }
  [[nodiscard]] bool leads() const { return world_.rank() == 0; }

  Communicator world_;
  Config config_;
  TrainerOptions options_;
  RunDirectory directory_;
  Network network_;
  Dataset dataset_;
  Executor executor_;
  std::int64_t batches_per_epoch_;
  CheckpointStore store_;
  std::optional<BatchFeed> feed_;
  std::optional<MetricsLog> metrics_;
  Progress progress_;
  CheckpointState state_;           ///< where the run stands: the next step's epoch, number and mini-batch
  std::int64_t last_written_ = -1;  ///< the step of the newest checkpoint
  double epoch_loss_sum_ = 0;       ///< of the epoch's samples so far
  std::int64_t epoch_samples_ = 0;
  double epoch_seconds_ = 0;
  std::int64_t file_bytes_told_ = 0;  ///< of those read so far, in the metrics already
};

}  // namespace halograd
