#include "data/shared_directory.hpp"
#include "data/voxel_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_access.hpp"
#include "halograd/data/read_choice.hpp"
#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

using test::chunked;
using test::contiguous;
using test::mentions;
using test::message_of;
using test::SharedDirectory;
using test::write_voxels;

const Extent volume{16, 8, 8};

/// All ranks as one group in a line along one dimension, and a file of theirs.
class ReadChoiceMpi : public testing::Test {
protected:
  GroupReader& cut(int dimension) {
    Extent grid = Extent::cube(1);
    grid[dimension] = ranks;
    const Partition partition = Partition::even(volume, grid);
    std::vector<Box> owned;
    for (std::int64_t r = 0; r < ranks; ++r) {
      Index part;
      part[dimension] = r;
      owned.push_back(partition.box(part));
    }
    return reader.emplace(world, GlobalShape{4, volume}, std::move(owned));
  }
  SamplePlace write(const VolumeLayout& layout) {
    if (world.rank() == 0) write_voxels(directory.file("file"), {.layout = layout});
    world.barrier();
    return {directory.file("file"), {layout}, 0, {}};
  }
  /// All ranks must have chosen alike.
  void expect_same(const ReadChoice& choice) const {
    const std::string text =
        fmt::format("{} {} {}", driver_name(choice.plan.driver), shape_name(choice.plan.shape), choice.why);
    for (const std::string& other : world.all_gather(text)) EXPECT_EQ(other, text);
  }

  Communicator world = Communicator::world();
  std::int64_t ranks = world.size();
  SharedDirectory directory{world};
  std::optional<GroupReader> reader;
};

TEST_F(ReadChoiceMpi, WholeSamplesAreTheFirstRanksThroughPosixUnlessFixed) {
  const SamplePlace nowhere{directory.file("missing"), {contiguous(volume)}, 0, {}};
  ReadChoice choice = choose_read_plan(world, cut(2), nowhere, {.whole_samples = true});
  EXPECT_EQ(choice.plan.shape, ReadShape::sample);
  EXPECT_EQ(choice.plan.driver, ReadDriver::posix);
  EXPECT_EQ(choice.why, "each group's first rank reads whole samples");
  EXPECT_EQ(choice.probe_bytes, 0);
  choice = choose_read_plan(world, cut(2), nowhere, {.whole_samples = true, .driver = ReadDriver::mpi_independent});
  EXPECT_EQ(choice.plan.driver, ReadDriver::mpi_independent);
}

TEST_F(ReadChoiceMpi, DepthCutsOfContiguousFilesAndSingleRanksNeedNoReading) {
  const SamplePlace nowhere{directory.file("missing"), {contiguous(volume)}, 0, {}};
  const ReadChoice choice = choose_read_plan(world, cut(0), nowhere, {});
  EXPECT_EQ(choice.plan.shape, ReadShape::boxes);
  EXPECT_EQ(choice.plan.driver, ReadDriver::posix);
  EXPECT_EQ(choice.why,
            ranks == 1 ? "each group is one rank" : "a depth cut of a contiguous file: each rank reads one run");
  EXPECT_EQ(choice.probe_bytes, 0);
  EXPECT_EQ(choose_read_plan(world, cut(0), nowhere, {.driver = ReadDriver::mpi_collective}).plan.driver,
            ReadDriver::mpi_collective);
}

TEST_F(ReadChoiceMpi, AWidthCutOfAContiguousFileIsReadInBlocksThreeTimesWithEachDriver) {
  if (ranks == 1) return;
  const SamplePlace place = write(contiguous(volume));
  const ReadChoice choice = choose_read_plan(world, cut(2), place, {});
  expect_same(choice);
  EXPECT_EQ(choice.plan.shape, ReadShape::blocks);
  for (const char* part :
       {"own boxes would be read in short runs; ", " GB/s posix", " mpi-independent", " mpi-collective"}) {
    EXPECT_TRUE(mentions(choice.why, part)) << choice.why;
  }
  EXPECT_EQ(choice.probe_bytes, 3 * 3 * 16 * 8 * 8 * 4 * 2 / ranks);
  EXPECT_EQ(reader->bytes_read(), 0) << "finding out is counted apart";
  // What is fixed stays fixed, and nothing is left to find out.
  const ReadChoice fixed = choose_read_plan(world, cut(2), place, {.driver = ReadDriver::mpi_independent});
  expect_same(fixed);
  EXPECT_EQ(fixed.plan.driver, ReadDriver::mpi_independent);
  EXPECT_EQ(fixed.plan.shape, ReadShape::blocks);
  EXPECT_EQ(fixed.why, "own boxes would be read in short runs");
  EXPECT_EQ(fixed.probe_bytes, 0);
}

TEST_F(ReadChoiceMpi, LargeSamplesAreTriedOnFewerPlanes) {
  if (ranks == 1) return;
  const SamplePlace place = write(contiguous(volume));
  // Half of the 16 planes of 512 bytes.
  const ReadChoice choice = choose_read_plan(world, cut(2), place, {.probe_limit = 8 * 8 * 8 * 4 * 2});
  expect_same(choice);
  EXPECT_EQ(choice.probe_bytes, 3 * 3 * 8 * 8 * 8 * 4 * 2 / ranks);
}

TEST_F(ReadChoiceMpi, SharedChunksMeanBlocks) {
  if (ranks == 1) return;
  const SamplePlace place = write(chunked(volume, {4, 8, 8}));
  const ReadChoice fixed = choose_read_plan(world, cut(2), place, {.driver = ReadDriver::posix});
  EXPECT_EQ(fixed.plan.shape, ReadShape::blocks);
  EXPECT_EQ(fixed.why, "own boxes would share chunks");
  EXPECT_EQ(fixed.probe_bytes, 0);
  const ReadChoice choice = choose_read_plan(world, cut(2), place, {});
  expect_same(choice);
  EXPECT_EQ(choice.plan.shape, ReadShape::blocks);
  // Tried on a depth of one chunk: one rank reads it.
  const ReadChoice less = choose_read_plan(world, cut(2), place, {.probe_limit = 1});
  EXPECT_EQ(less.probe_bytes, world.rank() == 0 ? 3 * 3 * 4 * 8 * 8 * 4 * 2 : 0);
  // A depth cut along the chunks shares none.
  if (ranks <= 4) {
    const ReadChoice along = choose_read_plan(world, cut(0), place, {.driver = ReadDriver::posix});
    EXPECT_EQ(along.plan.shape, ReadShape::boxes);
    EXPECT_EQ(along.why, "own boxes suit the files");
  }
}

// The file is gone for one rank alone; all must hear of it.
TEST_F(ReadChoiceMpi, AFileThatCannotBeReadIsAnErrorOnAllRanks) {
  if (ranks == 1) return;
  SamplePlace place = write(contiguous(volume));
  if (world.rank() == ranks - 1) place.file = directory.file("missing");
  const std::string message = message_of<DataError>([&] { choose_read_plan(world, cut(2), place, {}); });
  EXPECT_TRUE(mentions(message, directory.file("missing") + ": no such file")) << message;
  for (const std::string& other : world.all_gather(message)) EXPECT_EQ(other, message);
}

}  // namespace
}  // namespace halograd
