#include "halograd/data/loader.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <set>

namespace halograd {
namespace {

using test::mentions;
using test::message_of;
using test::SampleFile;
using test::TemporaryDirectory;

const SampleFile written{.shape = {4, {8, 9, 10}}};
const Box box{{0, 3, 0}, {8, 6, 10}};

Dataset dataset_in(const TemporaryDirectory& directory, std::int64_t count) {
  test::write_samples(directory.path(), count, written);
  return Dataset::open(Communicator::self(), {.path = directory.path(), .shape = written.shape});
}

void expect_batch(const Batch& batch, const std::vector<std::int64_t>& numbers) {
  ASSERT_EQ(batch.samples.size(), numbers.size());
  ASSERT_EQ(batch.targets.size(), 4 * numbers.size());
  EXPECT_EQ(batch.physical.size(), 4 * numbers.size());
  EXPECT_GE(batch.io_seconds, 0.0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    SampleFile expected = written;
    expected.offset = 100 * numbers[i];
    EXPECT_TRUE(batch.samples[i].voxels == test::expected_voxels(expected, box)) << "sample " << numbers[i];
    EXPECT_TRUE(mentions(batch.samples[i].file, fmt::format("universe_{:03}.hdf5", numbers[i])));
    EXPECT_EQ(batch.targets[4 * i], static_cast<float>(numbers[i]) / 100.0F);
    EXPECT_EQ(batch.physical[4 * i + 3], 67.74F);
  }
}

TEST(Loader, GivesWhatWasAskedForInOrder) {
  const TemporaryDirectory directory;
  Loader loader(dataset_in(directory, 6), box);
  const std::vector<std::vector<std::int64_t>> requests{{3, 1}, {5}, {}, {0, 1, 2, 3, 4, 5}, {2, 2}};
  for (const auto& request : requests) loader.request(request);
  EXPECT_EQ(loader.pending(), 5);
  for (const auto& request : requests) expect_batch(loader.take(), request);
  EXPECT_EQ(loader.pending(), 0);
}

TEST(Loader, ReadsOneAheadWhileTheBatchInUseStays) {
  const TemporaryDirectory directory;
  Loader loader(dataset_in(directory, 4), box);
  loader.request({0, 1});
  for (std::int64_t i = 0; i < 20; ++i) {
    const Batch& batch = loader.take();
    loader.request({(i + 1) % 4, (i + 2) % 4});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the next one is being read meanwhile
    expect_batch(batch, {i % 4, (i + 1) % 4});
  }
}

TEST(Loader, UsesItsBuffersAgain) {
  const TemporaryDirectory directory;
  Loader loader(dataset_in(directory, 4), box);
  std::set<const std::byte*> first;
  std::set<const std::byte*> later;
  for (int i = 0; i < 12; ++i) {
    const bool is_short = i % 3 == 2;
    loader.request(is_short ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{0, 1, 3});
    for (const RawSample& sample : loader.take().samples) (i < 4 ? first : later).insert(sample.voxels.data());
  }
  EXPECT_EQ(first.size(), 6U);
  EXPECT_EQ(first, later);
}

TEST(Loader, ErrorsComeOutOfTheirOwnTake) {
  const TemporaryDirectory directory;
  const Dataset dataset = dataset_in(directory, 4);
  std::ofstream(directory.file("universe_002.hdf5"), std::ios::trunc) << "damaged";
  std::filesystem::remove(directory.file("universe_003.hdf5"));
  Loader loader(dataset, box);
  for (const auto& request : {std::vector<std::int64_t>{0, 1}, {0, 2}, {3}, {1}}) loader.request(request);
  expect_batch(loader.take(), {0, 1});
  EXPECT_TRUE(mentions(message_of<DataError>([&] { loader.take(); }), directory.file("universe_002.hdf5")));
  EXPECT_TRUE(mentions(message_of<DataError>([&] { loader.take(); }), directory.file("universe_003.hdf5")));
  expect_batch(loader.take(), {1});
}

TEST(Loader, RefusesWhatIsNotThere) {
  const TemporaryDirectory directory;
  Loader loader(dataset_in(directory, 2), box);
  EXPECT_THROW(loader.take(), UsageError);
  EXPECT_THROW(loader.request({0, 2}), UsageError);
  EXPECT_THROW(loader.request({-1}), UsageError);
  EXPECT_EQ(loader.pending(), 0);
  loader.request({1});
  expect_batch(loader.take(), {1});
}

TEST(Loader, PhysicalTargetsOnlyWhereEverySampleHasThem) {
  const TemporaryDirectory directory;
  const Dataset dataset = dataset_in(directory, 2);
  SampleFile bare = written;
  bare.physical.reset();
  test::write_sample(directory.file("universe_001.hdf5"), bare);
  Loader loader(dataset, box);
  loader.request({0, 1});
  const Batch& batch = loader.take();
  EXPECT_TRUE(batch.physical.empty());
  EXPECT_EQ(batch.targets.size(), 8U);
}

TEST(Loader, EndsAtOnceWithRequestsLeft) {
  const TemporaryDirectory directory;
  const Dataset dataset = dataset_in(directory, 4);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    Loader loader(dataset, box);
    for (int j = 0; j < i; ++j) loader.request(std::vector<std::int64_t>(500, j % 4));
    if (i % 2 == 1) loader.request({0});
    if (i == 1) static_cast<void>(loader.take());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace halograd
