#include "halograd/data/dataset.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

namespace halograd {
namespace {

using Counts = std::array<std::int64_t, 3>;
using test::mentions;
using test::message_of;
using test::SampleFile;
using test::TemporaryDirectory;

const GlobalShape shape = SampleFile{}.shape;

Dataset open(const DatasetOptions& options) {
  return Dataset::open(Communicator::self(), options);
}

TEST(SplitCounts, FollowTheFractions) {
  EXPECT_EQ(split_counts(10, {0.8, 0.1, 0.1}), (Counts{8, 1, 1}));
  EXPECT_EQ(split_counts(100, {0.8, 0.1, 0.1}), (Counts{80, 10, 10}));
  EXPECT_EQ(split_counts(10017, {0.8, 0.1, 0.1}), (Counts{8015, 1001, 1001}));
  EXPECT_EQ(split_counts(100, {0.29, 0.58, 0.13}), (Counts{29, 58, 13}));
  EXPECT_EQ(split_counts(10, {1.0, 0.0, 0.0}), (Counts{10, 0, 0}));
  EXPECT_EQ(split_counts(7, {0.0, 0.0, 1.0}), (Counts{0, 0, 7}));
  EXPECT_EQ(split_counts(7, {0.0, 0.5, 0.5}), (Counts{0, 4, 3}));
  EXPECT_EQ(split_counts(9, {1.0 / 3, 1.0 / 3, 1.0 / 3}), (Counts{3, 3, 3}));
  EXPECT_EQ(split_counts(100, {0.5, 0.25, 0.0}), (Counts{50, 25, 0}));
}

TEST(SplitCounts, SmallSetsTrainFirst) {
  EXPECT_EQ(split_counts(1, {0.8, 0.1, 0.1}), (Counts{1, 0, 0}));
  EXPECT_EQ(split_counts(1, {0.1, 0.8, 0.1}), (Counts{1, 0, 0}));
  EXPECT_EQ(split_counts(2, {0.8, 0.1, 0.1}), (Counts{1, 1, 0}));
  EXPECT_EQ(split_counts(3, {0.8, 0.1, 0.1}), (Counts{1, 1, 1}));
  EXPECT_EQ(split_counts(5, {0.8, 0.1, 0.1}), (Counts{3, 1, 1}));
  EXPECT_EQ(split_counts(1, {0.1, 0.1, 0.1}), (Counts{1, 0, 0}));
}

TEST(SplitCounts, AlwaysAddUp) {
  for (std::int64_t n = 1; n <= 300; ++n) {
    for (const std::array<double, 3> f :
         {std::array{0.8, 0.1, 0.1}, std::array{0.7, 0.2, 0.1}, std::array{0.34, 0.33, 0.33}}) {
      const Counts counts = split_counts(n, f);
      EXPECT_EQ(counts[0] + counts[1] + counts[2], n);
      EXPECT_GE(counts[0], 1);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_LE(std::abs(static_cast<double>(counts[i]) - f[i] * static_cast<double>(n)), 2.0) << n;
      }
    }
  }
}

TEST(SplitCounts, RefuseBadFractions) {
  EXPECT_THROW(split_counts(10, {0.8, 0.2, 0.1}), UsageError);
  EXPECT_THROW(split_counts(10, {1.1, -0.1, 0.0}), UsageError);
  EXPECT_THROW(split_counts(10, {0.0, 0.0, 0.0}), UsageError);
  EXPECT_THROW(split_counts(10, {0.5, std::nan(""), 0.1}), UsageError);
}

TEST(Dataset, SplitsAreAPartitionThatTheSeedDecides) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 20);
  std::filesystem::rename(directory.file("universe_007.hdf5"), directory.file("universe_007.h5"));
  std::ofstream(directory.file("README.txt")) << "not a sample";
  DatasetOptions options{.path = directory.path(), .shape = shape, .split = {0.7, 0.2, 0.1}, .seed = 3};
  const Dataset dataset = open(options);
  ASSERT_EQ(dataset.size(), 20);
  EXPECT_EQ(dataset.name(0), "universe_000.hdf5");
  EXPECT_EQ(dataset.name(7), "universe_007.h5");
  EXPECT_EQ(dataset.file(19), directory.file("universe_019.hdf5"));
  EXPECT_EQ(dataset.samples(Split::train).size(), 14U);
  EXPECT_EQ(dataset.samples(Split::validation).size(), 4U);
  EXPECT_EQ(dataset.samples(Split::test).size(), 2U);
  std::vector<int> used(20, 0);
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto& samples = dataset.samples(split);
    EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
    for (const std::int64_t sample : samples) ++used[static_cast<std::size_t>(sample)];
  }
  EXPECT_EQ(used, std::vector<int>(20, 1));
  EXPECT_EQ(open(options).samples(Split::validation), dataset.samples(Split::validation));
  options.seed = 4;
  EXPECT_NE(open(options).samples(Split::validation), dataset.samples(Split::validation));
  options.split = {0.5, 0.0, 0.0};
  EXPECT_EQ(open(options).samples(Split::train).size(), 10U);
  EXPECT_TRUE(open(options).samples(Split::test).empty());
}

TEST(Dataset, BadDirectoriesAreDataErrorsThatNameThem) {
  const TemporaryDirectory directory;
  const auto message_for = [](const std::string& path) {
    const std::string message = message_of<DataError>([&] { open({.path = path, .shape = shape}); });
    EXPECT_TRUE(mentions(message, path) && mentions(message, "*.hdf5")) << message;
    return message;
  };
  EXPECT_TRUE(mentions(message_for(directory.file("missing")), "no such directory"));
  EXPECT_TRUE(mentions(message_for(directory.path().string()), "holds no samples"));
  std::ofstream(directory.file("file")) << "x";
  EXPECT_TRUE(mentions(message_for(directory.file("file")), "not a directory"));
}

TEST(Dataset, ABadFirstFileIsADataErrorOnOpening) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 2);
  const DatasetOptions options{.path = directory.path(), .shape = {4, Extent::cube(16)}};
  const std::string message = message_of<DataError>([&] { open(options); });
  EXPECT_TRUE(mentions(message, "universe_000.hdf5") && mentions(message, "[16,16,16,4]")) << message;
}

TEST(Dataset, BadOptionsAreUsageErrors) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 1);
  EXPECT_THROW(open({.path = directory.path(), .format = "lits", .shape = shape}), UsageError);
  EXPECT_THROW(open({.path = directory.path(), .shape = shape, .split = {0.9, 0.9, 0.0}}), UsageError);
}

}  // namespace
}  // namespace halograd
