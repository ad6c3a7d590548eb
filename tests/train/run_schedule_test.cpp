#include "halograd/train/run_schedule.hpp"

#include "data/sample_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace halograd {
namespace {

using test::SampleFile;
using test::TemporaryDirectory;

/// 12 samples: by default 7 to train on, 2 to validate, 3 to test.
Dataset twelve(const std::array<double, 3>& split = {0.58, 0.17, 0.25}) {
  static const TemporaryDirectory directory;
  static const bool written = [] {
    test::write_samples(directory.path(), 12, SampleFile{.shape = {4, Extent::cube(2)}});
    return true;
  }();
  static_cast<void>(written);
  return Dataset::open(Communicator::self(),
                       {.path = directory.path(), .shape = {4, Extent::cube(2)}, .split = split, .seed = 3});
}

std::vector<ScheduledBatch> all_of(RunSchedule schedule) {
  std::vector<ScheduledBatch> batches;
  while (std::optional<ScheduledBatch> batch = schedule.next()) batches.push_back(std::move(*batch));
  return batches;
}

/// "T0.0" for training epoch 0, mini-batch 0; V and E for validation and test.
std::string outline(const std::vector<ScheduledBatch>& batches) {
  std::string text;
  for (const ScheduledBatch& batch : batches) {
    text += fmt::format("{}{}.{}({}) ", "TVE"[static_cast<int>(batch.split)], batch.epoch, batch.index,
                        batch.samples.size());
  }
  return text;
}

TEST(RunSchedule, a_run_is_epochs_with_validation_and_a_test) {
  EXPECT_EQ(outline(all_of(RunSchedule(twelve(), {.batch = 3, .epochs = 2}))),
            "T0.0(3) T0.1(3) T0.2(1) V0.0(2) T1.0(3) T1.1(3) T1.2(1) V1.0(2) E2.0(3) ");
}

TEST(RunSchedule, only_training_takes_its_samples_varied) {
  for (const ScheduledBatch& batch : all_of(RunSchedule(twelve(), {.batch = 3, .epochs = 2}))) {
    EXPECT_EQ(batch.augment, batch.split == Split::train);
  }
  for (const ScheduledBatch& batch : all_of(RunSchedule::once(twelve(), Split::train, 3))) EXPECT_FALSE(batch.augment);
}

TEST(RunSchedule, splits_without_samples_are_passed_over) {
  EXPECT_EQ(outline(all_of(RunSchedule(twelve({1, 0, 0}), {.batch = 6, .epochs = 2}))),
            "T0.0(6) T0.1(6) T1.0(6) T1.1(6) ");
  EXPECT_EQ(outline(all_of(RunSchedule(twelve({0.5, 0.5, 0}), {.batch = 6, .epochs = 2}))),
            "T0.0(6) V0.0(6) T1.0(6) V1.0(6) ");
  EXPECT_EQ(outline(all_of(RunSchedule(twelve({0.5, 0, 0.5}), {.batch = 6, .epochs = 2}))), "T0.0(6) T1.0(6) E2.0(6) ");
  EXPECT_EQ(outline(all_of(RunSchedule::once(twelve({1, 0, 0}), Split::test, 6))), "");
}

TEST(RunSchedule, a_mini_batch_larger_than_the_set_is_all_of_it) {
  EXPECT_EQ(outline(all_of(RunSchedule(twelve(), {.batch = 100, .epochs = 2}))),
            "T0.0(7) V0.0(2) T1.0(7) V1.0(2) E2.0(3) ");
}

TEST(RunSchedule, every_pass_takes_every_sample_once) {
  const Dataset dataset = twelve();
  const std::vector<ScheduledBatch> batches = all_of(RunSchedule(dataset, {.batch = 2, .epochs = 3}));
  std::vector<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> order;
    for (const ScheduledBatch& batch : batches) {
      if (batch.split == Split::train && batch.epoch == epoch) {
        order.insert(order.end(), batch.samples.begin(), batch.samples.end());
      }
    }
    orders.push_back(order);
    std::ranges::sort(order);
    EXPECT_EQ(order, dataset.samples(Split::train));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(RunSchedule, a_resumed_run_goes_on_with_the_same_samples) {
  const Dataset dataset = twelve();
  const std::vector<ScheduledBatch> whole = all_of(RunSchedule(dataset, {.batch = 2, .seed = 5, .epochs = 2}));
  const std::vector<ScheduledBatch> rest =
      all_of(RunSchedule(dataset, {.batch = 2, .seed = 5, .epochs = 2, .first_epoch = 0, .first_batch = 3}));
  ASSERT_EQ(rest.size(), whole.size() - 3);
  for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i].samples, whole[i + 3].samples);
}

TEST(RunSchedule, ends_after_so_many_steps) {
  const Dataset dataset = twelve();
  EXPECT_EQ(outline(all_of(RunSchedule(dataset, {.batch = 3, .epochs = 2, .steps = 2}))), "T0.0(3) T0.1(3) ");
  EXPECT_EQ(outline(all_of(RunSchedule(dataset, {.batch = 3, .epochs = 2, .steps = 3}))),
            "T0.0(3) T0.1(3) T0.2(1) V0.0(2) ");
  EXPECT_EQ(outline(all_of(RunSchedule(dataset, {.batch = 3, .epochs = 1, .steps = 3}))),
            "T0.0(3) T0.1(3) T0.2(1) V0.0(2) E1.0(3) ");
  EXPECT_EQ(outline(all_of(RunSchedule(dataset, {.batch = 3, .epochs = 2, .steps = 0}))), "");
  EXPECT_EQ(outline(all_of(RunSchedule(dataset, {.batch = 3, .epochs = 2, .first_epoch = 2}))), "E2.0(3) ");
}

TEST(RunSchedule, once_is_one_pass_in_order) {
  const Dataset dataset = twelve();
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    std::vector<std::int64_t> order;
    for (const ScheduledBatch& batch : all_of(RunSchedule::once(dataset, split, 2))) {
      order.insert(order.end(), batch.samples.begin(), batch.samples.end());
    }
    EXPECT_EQ(order, dataset.samples(split));
  }
}

TEST(RunSchedule, the_first_passes_hold_every_sample_that_will_be_kept) {
  const Dataset dataset = twelve();
  std::set<std::int64_t> kept;
  for (const auto& batch : RunSchedule(dataset, {.batch = 3, .epochs = 5}).first_passes()) {
    kept.insert(batch.begin(), batch.end());
  }
  EXPECT_EQ(kept.size(), 9U);  // training and validation
  // Resumed behind 6 of 7 samples: those come in the next epoch only.
  std::set<std::int64_t> later;
  for (const auto& batch : RunSchedule(dataset, {.batch = 3, .epochs = 5, .first_batch = 2}).first_passes()) {
    later.insert(batch.begin(), batch.end());
  }
  EXPECT_EQ(later, kept);
  EXPECT_EQ(RunSchedule(dataset, {.batch = 3, .epochs = 1, .first_batch = 2}).first_passes().size(), 2U);
}

}  // namespace
}  // namespace halograd
