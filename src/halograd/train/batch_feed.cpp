#include "halograd/train/batch_feed.hpp"

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

InputSlots input_slots(Executor& executor, const InputUnit& input) {
  return {input.own, input.tile.box, {executor.input_slot(0), executor.input_slot(1)}};
}

LoaderOptions loader_options(const Executor& executor, const FeedOptions& options, std::int64_t second_slot) {
  LoaderOptions loader{.grid = executor.options().grid,
                       .backend = executor.options().backend,
                       .transform = options.transform,
                       .read = options.read,
                       .store = options.store};
  if (loader.store.kind == StoreKind::memory && loader.store.memory_budget == 0) {
    const std::int64_t ranks = executor.world().ranks_on_node();
    loader.store.memory_budget = default_memory_budget(ranks * (executor.arena_bytes() + second_slot), ranks);
  }
  return loader;
}

}  // namespace

BatchFeed::BatchFeed(Executor& executor, const Plan& plan, const Dataset& dataset, const FeedOptions& options,
                     RunSchedule schedule)
    : world_(executor.world()),
      dataset_(dataset),
      schedule_(std::move(schedule)),
      loader_(
          world_, dataset, input_slots(executor, plan.input), loader_options(executor, options, plan.input_bytes()),
          options.store.kind == StoreKind::off ? std::vector<std::vector<std::int64_t>>{} : schedule_.first_passes()) {
  request_next();
}

void BatchFeed::request_next() {
  std::optional<ScheduledBatch> next = schedule_.next();
  if (!next) return;
  // The test comes once, at the end.
  loader_.request({.samples = next->samples, .keep = next->split != Split::test});
  requested_.push_back(std::move(*next));
}

const MiniBatch& BatchFeed::next() {
  if (requested_.empty()) throw UsageError("the schedule has no further mini-batch");
  scheduled_ = std::move(requested_.front());
  requested_.pop_front();
  request_next();
  agree(world_, [&] { loaded_ = loader_.take(); });
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
