#pragma once

#include "halograd/data/loader.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/train/run_schedule.hpp"

#include <deque>
#include <vector>

namespace halograd {

/// How samples are read, transformed and kept, as [data] has it.
struct FeedOptions {
  ValueTransform transform;
  LabelRange labels;       ///< what the network's loss takes
  AugmentOptions augment;  ///< of training samples; their seed is the schedule's
  ReadOptions read;
  StoreOptions store;  ///< a memory budget of 0: what the node has free, shared out
};

/// Feeds a run's mini-batches to an executor, each loaded and converted while the one before is computed.
class BatchFeed {
public:
  /// Collective. `executor` has two input slots and is prepared for everything it will run, of which `plan` is one:
  /// what memory is left then goes to the store. Throws on all ranks alike, as Loader does.
  BatchFeed(Executor& executor, const Plan& plan, const Dataset& dataset, const FeedOptions& options,
            RunSchedule schedule);

  /// Collective. The schedule's next mini-batch, ready for the executor; valid until the next call. Throws on all ranks
  /// alike where loading failed on any, and UsageError at the schedule's end.
  const MiniBatch& next();
  /// This group's samples of what `next` gave, in order.
  [[nodiscard]] const std::vector<std::int64_t>& samples() const { return loaded_.samples; }
  /// All samples of it, whatever their group.
  [[nodiscard]] const ScheduledBatch& scheduled() const { return scheduled_; }
  /// Bytes of voxels this rank read from files for the mini-batches given so far.
  [[nodiscard]] std::int64_t file_bytes() const { return file_bytes_; }

  /// How samples are read and where they are kept, for the log.
  [[nodiscard]] const std::vector<std::string>& notes() const { return loader_.notes(); }

private:
  void request_next();

  Communicator world_;
  Dataset dataset_;
  RunSchedule schedule_;
  Loader loader_;
  std::deque<ScheduledBatch> requested_;
  ScheduledBatch scheduled_;
  LoadedBatch loaded_;
  MiniBatch batch_;
  std::vector<float> targets_;
  std::int64_t file_bytes_ = 0;
};

}  // namespace halograd
