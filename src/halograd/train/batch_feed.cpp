#include "halograd/train/batch_feed.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"

namespace halograd {
namespace {

/// How long a rank that could not load waits for others, who may wait for its part of a reading.
constexpr std::chrono::seconds patience{2};

InputSlots input_slots(Executor& executor, const InputUnit& input) {
  return {input.own,
          input.tile.box,
          {executor.input_slot(0), executor.input_slot(1)},
          input.tile.type,
          {executor.label_slot(0), executor.label_slot(1)}};
}

/// What a loader holds of samples beside the store: those that come from other groups, one each being read, passed on
/// (sent and received), flipped and converted.
std::int64_t loader_bytes(const Plan& plan) {
  const std::int64_t voxel = plan.input.shape.channels * dtype_size(DType::f32) + dtype_size(DType::u8);
  return (plan.samples.count + 5) * plan.input.own.volume() * voxel;
}

LoaderOptions loader_options(const Executor& executor, const Plan& plan, const FeedOptions& options,
                             std::uint64_t seed) {
  LoaderOptions loader{.grid = executor.options().grid,
                       .device = executor.device(),
                       .transform = options.transform,
                       .labels = options.labels,
                       .augment = options.augment,
                       .read = options.read,
                       .store = options.store};
  loader.augment.seed = seed;
  const std::int64_t needs = executor.planned_bytes() + loader_bytes(plan);
  StoreOptions& store = loader.store;
  store.memory_free = memory_share(available_memory_bytes(), needs, executor.world().ranks_on_node());
  if (store.memory_budget == 0) store.memory_budget = store.memory_free;
  return loader;
}

}  // namespace

BatchFeed::BatchFeed(Executor& executor, const Plan& plan, const Dataset& dataset, const FeedOptions& options,
                     RunSchedule schedule)
    : world_(executor.world()),
      dataset_(dataset),
      schedule_(std::move(schedule)),
      loader_(
          world_, dataset, input_slots(executor, plan.input), loader_options(executor, plan, options, schedule_.seed()),
          options.store.kind == StoreKind::off ? std::vector<std::vector<std::int64_t>>{} : schedule_.first_passes()) {
  if (plan.input.labels >= 0 && !dataset.labelled()) {
    throw UsageError("the network learns labels, and the data set has none");
  }
  request_next();
}

void BatchFeed::request_next() {
  std::optional<ScheduledBatch> next = schedule_.next();
  if (!next) return;
  // The test comes once, at the end.
  loader_.request(
      {.samples = next->samples, .keep = next->split != Split::test, .augment = next->augment, .epoch = next->epoch});
  requested_.push_back(std::move(*next));
}

const MiniBatch& BatchFeed::next() {
  if (requested_.empty()) throw UsageError("the schedule has no further mini-batch");
  scheduled_ = std::move(requested_.front());
  requested_.pop_front();
  request_next();
  agree(
      world_, [&] { loaded_ = loader_.take(); }, patience);
  file_bytes_ += loaded_.file_bytes;
  batch_.size = static_cast<std::int64_t>(scheduled_.samples.size());
  batch_.slot = loaded_.slot;
  batch_.samples.clear();
  targets_.clear();
  for (const std::int64_t sample : loaded_.samples) {
    batch_.samples.push_back({.data = nullptr});
    const Cosmology& targets = dataset_.targets(sample);
    targets_.insert(targets_.end(), targets.begin(), targets.end());
  }
  batch_.targets = targets_.data();
  return batch_;
}

}  // namespace halograd
