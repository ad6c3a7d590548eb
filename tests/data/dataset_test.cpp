#include "halograd/data/dataset.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

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

/// A split depends on how many universes there are, and on the seed, alone: as it always has.
TEST(Dataset, ASplitIsTheStartOfAPermutation) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 20);
  const Dataset dataset = open({.path = directory.path(), .shape = shape, .split = {0.7, 0.2, 0.1}, .seed = 3});
  const std::vector<std::int64_t> order = permutation(20, random_stream(3, RandomPurpose::split));
  std::vector<std::int64_t> train(order.begin(), order.begin() + 14);
  std::sort(train.begin(), train.end());
  EXPECT_EQ(dataset.samples(Split::train), train);
  EXPECT_EQ(dataset.samples(Split::validation), (std::vector<std::int64_t>{8, 12, 15, 17}));
  EXPECT_EQ(dataset.samples(Split::test), (std::vector<std::int64_t>{4, 9}));
}

// --- Several samples a file ---------------------------------------------------------------------------------------

std::string path_in(const TemporaryDirectory& directory, std::int64_t number) {
  return directory.file(fmt::format("universe_{:03}.hdf5", number));
}

TEST(StackedFiles, EntriesAreSamples) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 4, {.entries = 3});
  const SampleFile alone{.dtype = DType::i16, .channels_first = true, .physical = std::nullopt};
  test::write_sample(path_in(directory, 1), alone);
  const Dataset dataset = open({.path = directory.path(), .shape = shape});
  ASSERT_EQ(dataset.size(), 10);
  EXPECT_EQ(dataset.universes(), 10);
  EXPECT_EQ(dataset.name(2), "universe_000.hdf5[2]");
  EXPECT_EQ(dataset.name(3), "universe_001.hdf5");
  EXPECT_EQ(dataset.name(4), "universe_002.hdf5[0]");
  EXPECT_EQ(dataset.name(9), "universe_003.hdf5[2]");
  EXPECT_EQ(dataset.file(9), path_in(directory, 3));
  EXPECT_EQ(dataset.place(2).entry, 2);
  EXPECT_EQ(dataset.place(3).entry, 0);
  EXPECT_EQ(dataset.place(8).entry, 1);
  EXPECT_EQ(dataset.place(8).origin, Index{});
  EXPECT_EQ(dataset.targets(8), test::of_entry({0.03F, 0, 0, 0}, 1));
  EXPECT_EQ(dataset.physical(8), test::of_entry(*SampleFile{}.physical, 1));
  EXPECT_EQ(dataset.targets(3), *alone.targets);
  EXPECT_FALSE(dataset.physical(3).has_value());
  EXPECT_TRUE(dataset.layout(4).image.stacked);
  EXPECT_EQ(dataset.layout(4).image.entries, 3);
  EXPECT_EQ(dataset.layout(3).image.layout, (SampleLayout{DType::i16, true}));
  EXPECT_EQ(&dataset.layout(0), &dataset.layout(9)) << "files laid out alike share their layout";
  EXPECT_THROW(static_cast<void>(dataset.name(10)), UsageError);
  EXPECT_THROW(static_cast<void>(dataset.targets(-1)), UsageError);
}

TEST(StackedFiles, BytesAreThoseInMemory) {
  const TemporaryDirectory directory;
  test::write_sample(directory.file("a.h5"), {.dtype = DType::f32, .file_type = H5T_IEEE_F64LE});
  test::write_sample(directory.file("b.h5"), {.dtype = DType::i16, .modulus = 100, .file_type = H5T_STD_I8LE});
  test::write_sample(directory.file("c.h5"), {.dtype = DType::u8});
  const Dataset dataset = open({.path = directory.path(), .shape = shape});
  const Box box{{1, 0, 2}, {4, 5, 8}};
  EXPECT_EQ(dataset.bytes(0, box), 3 * 5 * 6 * 4 * 4);
  EXPECT_EQ(dataset.bytes(1, box), 3 * 5 * 6 * 4 * 2);
  EXPECT_EQ(dataset.bytes(2, box), 3 * 5 * 6 * 4);
  EXPECT_EQ(dataset.bytes(2, Box{}), 0);
}

const GlobalShape part{4, {4, 2, 3}};  ///< of which files are multiples

GlobalShape times(std::int64_t d, std::int64_t h, std::int64_t w) {
  return {part.channels, {part.extent.d * d, part.extent.h * h, part.extent.w * w}};
}

TEST(SubVolumes, AreNumberedDepthSlowestWidthFastest) {
  const TemporaryDirectory directory;
  test::write_sample(directory.file("a.h5"), {.shape = times(2, 2, 2)});
  test::write_sample(directory.file("b.h5"), {.shape = times(1, 1, 1)});
  test::write_sample(directory.file("c.h5"), {.shape = times(1, 2, 3), .entries = 2});
  const Dataset dataset = open({.path = directory.path(), .shape = part, .subvolumes = true});
  ASSERT_EQ(dataset.size(), 8 + 1 + 2 * 6);
  EXPECT_EQ(dataset.universes(), 4);
  EXPECT_EQ(dataset.shape(), part);
  const std::vector<std::string> names{"a.h5[0:4,0:2,0:3]",   "a.h5[0:4,0:2,3:6]",   "a.h5[0:4,2:4,0:3]",
                                       "a.h5[0:4,2:4,3:6]",   "a.h5[4:8,0:2,0:3]",   "a.h5[4:8,0:2,3:6]",
                                       "a.h5[4:8,2:4,0:3]",   "a.h5[4:8,2:4,3:6]",   "b.h5",
                                       "c.h5[0,0:4,0:2,0:3]", "c.h5[0,0:4,0:2,3:6]", "c.h5[0,0:4,0:2,6:9]",
                                       "c.h5[0,0:4,2:4,0:3]", "c.h5[0,0:4,2:4,3:6]", "c.h5[0,0:4,2:4,6:9]",
                                       "c.h5[1,0:4,0:2,0:3]", "c.h5[1,0:4,0:2,3:6]", "c.h5[1,0:4,0:2,6:9]",
                                       "c.h5[1,0:4,2:4,0:3]", "c.h5[1,0:4,2:4,3:6]", "c.h5[1,0:4,2:4,6:9]"};
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(dataset.name(static_cast<std::int64_t>(i)), names[i]);
  EXPECT_EQ(dataset.place(6).origin, (Index{4, 2, 0}));
  EXPECT_EQ(dataset.place(8).origin, Index{});
  EXPECT_EQ(dataset.place(17).origin, (Index{0, 0, 6}));
  EXPECT_EQ(dataset.place(14).entry, 0);
  EXPECT_EQ(dataset.place(15).entry, 1);
  EXPECT_EQ(dataset.layout(20).image.shape, times(1, 2, 3));
  EXPECT_EQ(dataset.targets(14), *SampleFile{}.targets);
  EXPECT_EQ(dataset.targets(15), test::of_entry(*SampleFile{}.targets, 1));
  EXPECT_EQ(dataset.bytes(20, Box::whole(part.extent)), 4 * 2 * 3 * 4 * 2);
}

TEST(SubVolumes, CoverTheirUniverseOnce) {
  const TemporaryDirectory directory;
  const GlobalShape whole = times(3, 2, 4);
  test::write_sample(directory.file("a.h5"), {.shape = whole, .channels_first = true});
  const Dataset dataset = open({.path = directory.path(), .shape = part, .subvolumes = true});
  std::vector<int> covered(static_cast<std::size_t>(whole.extent.volume()), 0);
  for (std::int64_t sample = 0; sample < dataset.size(); ++sample) {
    const Index lo = dataset.place(sample).origin;
    for (Index at = lo; at.d < lo.d + part.extent.d; ++at.d) {
      for (at.h = lo.h; at.h < lo.h + part.extent.h; ++at.h) {
        for (at.w = lo.w; at.w < lo.w + part.extent.w; ++at.w) {
          ++covered.at(static_cast<std::size_t>((at.d * whole.extent.h + at.h) * whole.extent.w + at.w));
        }
      }
    }
  }
  EXPECT_EQ(dataset.size(), 24);
  EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
}

TEST(SubVolumes, OfOneUniverseAreNeverSplit) {
  const TemporaryDirectory directory;
  // 6 universes of 8 samples and 3 · 2 of 6: 12 universes, 84 samples.
  for (std::int64_t i = 0; i < 9; ++i) {
    const bool stacked = i % 3 == 2;
    test::write_sample(path_in(directory, i),
                       {.shape = stacked ? times(1, 2, 3) : times(2, 2, 2), .entries = stacked ? 2 : 0});
  }
  DatasetOptions options{.path = directory.path(), .shape = part, .subvolumes = true, .split = {0.5, 0.3, 0.2}};
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    const Dataset dataset = open(options);
    ASSERT_EQ(dataset.size(), 84);
    ASSERT_EQ(dataset.universes(), 12);
    std::map<std::string, std::set<Split>> used;  // universe → splits
    std::vector<int> seen(84, 0);
    for (const Split split : {Split::train, Split::validation, Split::test}) {
      const auto& samples = dataset.samples(split);
      EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
      std::set<std::string> universes;
      for (const std::int64_t sample : samples) {
        ++seen.at(static_cast<std::size_t>(sample));
        universes.insert(fmt::format("{} {}", dataset.file(sample), dataset.place(sample).entry));
      }
      for (const std::string& universe : universes) used[universe].insert(split);
      EXPECT_EQ(static_cast<std::int64_t>(universes.size()),
                split_counts(12, options.split)[static_cast<std::size_t>(split)]);
    }
    EXPECT_EQ(seen, std::vector<int>(84, 1)) << "seed " << options.seed;
    EXPECT_EQ(used.size(), 12U);
    for (const auto& [universe, splits] : used) EXPECT_EQ(splits.size(), 1U) << universe;
  }
}

/// Which universes a split gets does not depend on whether they are cut.
TEST(SubVolumes, GoWhereTheirUniverseWouldGo) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 10, {.shape = times(2, 1, 2)});
  const Dataset whole = open({.path = directory.path(), .shape = times(2, 1, 2)});
  const Dataset cut = open({.path = directory.path(), .shape = part, .subvolumes = true});
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    std::vector<std::int64_t> expected;
    for (const std::int64_t universe : whole.samples(split)) {
      for (std::int64_t i = 0; i < 4; ++i) expected.push_back(4 * universe + i);
    }
    EXPECT_EQ(cut.samples(split), expected);
  }
}

// --- What is refused ----------------------------------------------------------------------------------------------

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

TEST(Dataset, ABadFileAnywhereIsADataErrorOnOpening) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 5);
  const std::string large = message_of<DataError>([&] {
    open({.path = directory.path(), .shape = {4, Extent::cube(16)}});
  });
  EXPECT_TRUE(mentions(large, "universe_000.hdf5") && mentions(large, "[16,16,16,4]")) << large;
  EXPECT_TRUE(mentions(message_of<DataError>([&] {
                         open({.path = directory.path(), .shape = {4, Extent::cube(4)}});
                       }),
                       "`data.subvolume` would cut it into 2x2x2"));
  test::write_sample(path_in(directory, 3), {.targets = std::nullopt});
  const std::string bare = message_of<DataError>([&] { open({.path = directory.path(), .shape = shape}); });
  EXPECT_EQ(bare, path_in(directory, 3) + ": has no dataset `unitPar`; expected the targets [4] of f32");
}

TEST(Dataset, BadOptionsAreUsageErrors) {
  const TemporaryDirectory directory;
  test::write_samples(directory.path(), 1);
  EXPECT_THROW(open({.path = directory.path(), .format = "nifti", .shape = shape}), UsageError);
  EXPECT_THROW(open({.path = directory.path(), .shape = shape, .split = {0.9, 0.9, 0.0}}), UsageError);
}

}  // namespace
}  // namespace halograd
