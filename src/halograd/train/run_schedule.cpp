#include "halograd/train/run_schedule.hpp"

#include <limits>
#include <unordered_set>

namespace halograd {

RunSchedule::RunSchedule(const Dataset& dataset, const RunScheduleOptions& options)
    : options_(options),
      at_{.split = Split::train, .epoch = options.first_epoch, .index = options.first_batch, .samples = {}},
      steps_left_(options.steps.value_or(std::numeric_limits<std::int64_t>::max())) {
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    samplers_.emplace_back(
        dataset.samples(split),
        SamplerOptions{.batch = options.batch, .shuffle = split == Split::train, .seed = options.seed});
  }
  if (at_.epoch >= options_.epochs) at_ = {.split = Split::test, .epoch = at_.epoch, .index = 0, .samples = {}};
  settle();
}

RunSchedule RunSchedule::once(const Dataset& dataset, Split split, std::int64_t batch) {
  RunSchedule schedule(dataset, {.batch = batch});
  schedule.samplers_[static_cast<std::size_t>(split)] =
      Sampler(dataset.samples(split), {.batch = batch, .shuffle = false});
  schedule.at_ = {.split = split, .epoch = 0, .index = 0, .samples = {}};
  schedule.last_ = split;
  schedule.evaluates_ = true;
  schedule.ended_ = false;
  schedule.settle();
  return schedule;
}

/// Steps over the ends of passes, so that `at_` is a mini-batch there is.
void RunSchedule::settle() {
  while (!ended_ && at_.index >= sampler().batches_per_epoch()) {
    at_.index = 0;
    if (at_.split == last_) {
      ended_ = true;
    } else if (at_.split == Split::train) {
      at_.split = Split::validation;
    } else {
      at_.split = ++at_.epoch < options_.epochs ? Split::train : Split::test;
    }
  }
  if (at_.split == Split::train && steps_left_ <= 0) ended_ = true;
}

std::optional<ScheduledBatch> RunSchedule::next() {
  if (ended_) return std::nullopt;
  ScheduledBatch batch = at_;
  batch.samples = sampler().mini_batch(at_.epoch, at_.index);
  batch.augment = at_.split == Split::train && !evaluates_;
  ++at_.index;
  if (at_.split == Split::train) --steps_left_;
  settle();
  return batch;
}

std::vector<std::vector<std::int64_t>> RunSchedule::first_passes() const {
  RunSchedule ahead = *this;
  std::size_t unseen = 0;
  for (const Split split : {Split::train, Split::validation}) {
    unseen += static_cast<std::size_t>(samplers_[static_cast<std::size_t>(split)].samples());
  }
  std::vector<std::vector<std::int64_t>> batches;
  std::unordered_set<std::int64_t> seen;
  while (seen.size() < unseen) {
    std::optional<ScheduledBatch> batch = ahead.next();
    if (!batch) break;
    if (batch->split == Split::test) continue;
    seen.insert(batch->samples.begin(), batch->samples.end());
    batches.push_back(std::move(batch->samples));
  }
  return batches;
}

}  // namespace halograd
