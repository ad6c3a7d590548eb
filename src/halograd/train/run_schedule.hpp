#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/data/sampler.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace halograd {

/// One global mini-batch of a run.
struct ScheduledBatch {
  Split split = Split::train;
  std::int64_t epoch = 0;
  std::int64_t index = 0;  ///< in its epoch's split
  std::vector<std::int64_t> samples;
  bool augment = false;  ///< training takes its samples varied
};

struct RunScheduleOptions {
  std::int64_t batch = 1;
  std::uint64_t seed = 1;        ///< of the training samples' order
  std::int64_t epochs = 1;       ///< to train; each ends with validation, the last with the test
  std::int64_t first_epoch = 0;  ///< where the run goes on
  std::int64_t first_batch = 0;
  std::optional<std::int64_t> steps{};  ///< at most so many training steps; the epoch they end in stays unfinished
};

/// Every mini-batch of a run, in the order in which it is needed: a pure function of the options, so that whoever loads
/// may look ahead across the ends of epochs, and all ranks know what the others load.
class RunSchedule {
public:
  RunSchedule(const Dataset& dataset, const RunScheduleOptions& options);
  /// One pass over one split, in its own order: an evaluation.
  static RunSchedule once(const Dataset& dataset, Split split, std::int64_t batch);

  /// Of the training samples' order.
  [[nodiscard]] std::uint64_t seed() const { return options_.seed; }

  /// Nothing where the run ends.
  std::optional<ScheduledBatch> next();

  /// The mini-batches of training and validation from here on, up to where every sample that comes has come once.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> first_passes() const;

private:
  [[nodiscard]] Sampler& sampler() { return samplers_[static_cast<std::size_t>(at_.split)]; }
  void settle();

  RunScheduleOptions options_;
  std::vector<Sampler> samplers_;  // of the splits
  ScheduledBatch at_;              // the next one, without its samples
  Split last_ = Split::test;       // nothing follows it
  bool evaluates_ = false;
  std::int64_t steps_left_ = 0;
  bool ended_ = false;
};

}  // namespace halograd
