#include "halograd/data/read_plan.hpp"

#include "data/voxel_files.hpp"
#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

#include <set>

namespace halograd {
namespace {

using test::chunked;
using test::contiguous;

std::vector<Box> grid_boxes(const Extent& sample, const Extent& grid) {
  const Partition partition = Partition::even(sample, grid);
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < grid.volume(); ++i) {
    boxes.push_back(partition.box({i / (grid.h * grid.w), i / grid.w % grid.h, i % grid.w}));
  }
  return boxes;
}

/// Whether the boxes are the sample, each voxel once.
void expect_the_sample_once(const std::vector<Box>& boxes, const Extent& sample) {
  std::int64_t voxels = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    voxels += boxes[i].volume();
    EXPECT_TRUE(Box::whole(sample).contains(boxes[i]));
    for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(boxes[i].intersect(boxes[j]).empty());
  }
  EXPECT_EQ(voxels, sample.volume());
}

/// How many chunks a box touches, with each of them in `seen` once only.
std::int64_t take_chunks(const Box& box, const Index& origin, const Extent& chunk,
                         std::set<std::array<std::int64_t, 3>>& seen) {
  std::set<std::array<std::int64_t, 3>> own;
  for (Index at = box.lo; at.d < box.hi.d; ++at.d) {
    for (at.h = box.lo.h; at.h < box.hi.h; ++at.h) {
      for (at.w = box.lo.w; at.w < box.hi.w; ++at.w) {
        own.insert({(origin.d + at.d) / chunk.d, (origin.h + at.h) / chunk.h, (origin.w + at.w) / chunk.w});
      }
    }
  }
  for (const auto& place : own) EXPECT_TRUE(seen.insert(place).second) << "a chunk is shared";
  return static_cast<std::int64_t>(own.size());
}

/// The largest share of any split of `units` into at most `ranks` parts, by trying all.
std::int64_t best_share(const Extent& units, std::int64_t ranks) {
  std::int64_t best = units.volume();
  for (std::int64_t d = 1; d <= std::min(ranks, units.d); ++d) {
    for (std::int64_t h = 1; d * h <= ranks && h <= units.h; ++h) {
      for (std::int64_t w = 1; d * h * w <= ranks && w <= units.w; ++w) {
        best = std::min(best, ((units.d + d - 1) / d) * ((units.h + h - 1) / h) * ((units.w + w - 1) / w));
      }
    }
  }
  return best;
}

TEST(ReadPlan, NamesAreTheConfigurations) {
  EXPECT_STREQ(driver_name(ReadDriver::posix), "posix");
  EXPECT_STREQ(driver_name(ReadDriver::mpi_independent), "mpi-independent");
  EXPECT_STREQ(driver_name(ReadDriver::mpi_collective), "mpi-collective");
  EXPECT_STREQ(shape_name(ReadShape::boxes), "own boxes");
  EXPECT_STREQ(shape_name(ReadShape::blocks), "blocks");
  EXPECT_STREQ(shape_name(ReadShape::sample), "whole samples");
}

TEST(ReadPlan, BoxesAreTheOwnedOnesAndSampleIsAllOnTheFirstRank) {
  const auto owned = grid_boxes({8, 8, 8}, {1, 2, 2});
  const VolumeLayout file = chunked({16, 16, 16}, {5, 5, 5});
  EXPECT_EQ(boxes_to_read(ReadShape::boxes, file, {8, 0, 8}, {8, 8, 8}, owned), owned);
  EXPECT_EQ(boxes_to_read(ReadShape::sample, file, {8, 0, 8}, {8, 8, 8}, owned),
            (std::vector<Box>{Box::whole({8, 8, 8}), {}, {}, {}}));
}

// All extents, chunks, origins and rank counts of a small set: the sample once, no chunk twice, the best balance.
TEST(ReadPlan, BlocksOfChunksCoverTheSampleOnceShareNoChunkAndAreBalanced) {
  int cases = 0;
  for (const Extent sample : {Extent{6, 6, 6}, Extent{13, 10, 7}, Extent{1, 9, 4}}) {
    for (const Extent chunk :
         {Extent{1, 1, 1}, Extent{2, 3, 6}, Extent{4, 4, 4}, Extent{5, 2, 3}, Extent{20, 20, 20}}) {
      for (const Index origin : {Index{0, 0, 0}, Index{1, 2, 3}, Index{6, 4, 8}, Index{19, 0, 21}}) {
        for (const Extent grid :
             {Extent{1, 1, 1}, Extent{2, 1, 1}, Extent{1, 1, 3}, Extent{1, 2, 2}, Extent{1, 4, 2}, Extent{1, 3, 4}}) {
          if (sample.d < grid.d || sample.h < grid.h || sample.w < grid.w) continue;
          VolumeLayout file = chunked({40, 40, 40}, chunk);
          file.layout.channels_first = cases % 2 == 1;
          const auto boxes = boxes_to_read(ReadShape::blocks, file, origin, sample, grid_boxes(sample, grid));
          ASSERT_EQ(static_cast<std::int64_t>(boxes.size()), grid.volume());
          expect_the_sample_once(boxes, sample);
          std::set<std::array<std::int64_t, 3>> seen;
          std::int64_t largest = 0;
          for (const Box& box : boxes) largest = std::max(largest, take_chunks(box, origin, chunk, seen));
          Extent units;
          for (int i = 0; i < 3; ++i) units[i] = (origin[i] + sample[i] - 1) / chunk[i] - origin[i] / chunk[i] + 1;
          EXPECT_EQ(largest, best_share(units, grid.volume()));
          ++cases;
        }
      }
    }
  }
  EXPECT_EQ(cases, 340);
}

TEST(ReadPlan, BlocksOfAContiguousFileAreWholePlanes) {
  for (const bool channels_first : {false, true}) {
    VolumeLayout file = contiguous({13, 10, 7});
    file.layout.channels_first = channels_first;
    for (const Extent grid : {Extent{1, 1, 2}, Extent{1, 2, 2}, Extent{2, 1, 3}, Extent{1, 5, 3}}) {
      const auto boxes = boxes_to_read(ReadShape::blocks, file, {}, {13, 10, 7}, grid_boxes({13, 10, 7}, grid));
      expect_the_sample_once(boxes, {13, 10, 7});
      const std::int64_t ranks = grid.volume();
      for (const Box& box : boxes) {
        if (box.empty()) continue;
        EXPECT_EQ(box.extent().h, 10);
        EXPECT_EQ(box.extent().w, 7);
        EXPECT_LE(box.extent().d, (13 + ranks - 1) / ranks);
      }
    }
  }
}

TEST(ReadPlan, BlocksInAFewCasesByHand) {
  const auto blocks = [](const VolumeLayout& file, const Index& origin, const Extent& sample, const Extent& grid) {
    return boxes_to_read(ReadShape::blocks, file, origin, sample, grid_boxes(sample, grid));
  };
  // Planes: 5 over 3 ranks, larger parts first.
  EXPECT_EQ(blocks(contiguous({5, 4, 6}), {}, {5, 4, 6}, {1, 1, 3}),
            (std::vector<Box>{{{0, 0, 0}, {2, 4, 6}}, {{2, 0, 0}, {4, 4, 6}}, {{4, 0, 0}, {5, 4, 6}}}));
  // Fewer planes than ranks: the last ones are idle.
  EXPECT_EQ(blocks(contiguous({2, 4, 6}), {}, {2, 4, 6}, {1, 1, 3}),
            (std::vector<Box>{{{0, 0, 0}, {1, 4, 6}}, {{1, 0, 0}, {2, 4, 6}}, {}}));
  // 2 x 2 x 2 chunks on two ranks: as the ranks' own cut, in width.
  EXPECT_EQ(blocks(chunked({8, 8, 8}, {4, 4, 4}), {}, {8, 8, 8}, {1, 1, 2}),
            (std::vector<Box>{{{0, 0, 0}, {8, 8, 4}}, {{0, 0, 4}, {8, 8, 8}}}));
  // A cut that no chunk border follows: in depth where nothing else decides.
  EXPECT_EQ(blocks(chunked({8, 8, 8}, {4, 4, 8}), {}, {8, 8, 8}, {1, 1, 2}),
            (std::vector<Box>{{{0, 0, 0}, {4, 8, 8}}, {{4, 0, 0}, {8, 8, 8}}}));
  // A sub-volume that begins inside a chunk: cut where the file's chunks end, 2 voxels after its beginning.
  EXPECT_EQ(blocks(chunked({16, 16, 16}, {16, 16, 8}), {0, 0, 6}, {8, 8, 8}, {2, 1, 1}),
            (std::vector<Box>{{{0, 0, 0}, {8, 8, 2}}, {{0, 0, 2}, {8, 8, 8}}}));
  // One chunk holds everything: one rank reads it.
  EXPECT_EQ(blocks(chunked({8, 8, 8}, {8, 8, 8}), {}, {8, 8, 8}, {2, 1, 1}),
            (std::vector<Box>{Box::whole({8, 8, 8}), {}}));
}

TEST(ReadPlan, OwnBoxesAreSlowWhereChunksAreShared) {
  const Extent sample{8, 8, 8};
  const auto slow = [&](const Extent& chunk, const Index& origin, const Extent& grid) {
    return boxes_are_slow(chunked({32, 32, 32}, chunk), origin, sample, grid_boxes(sample, grid));
  };
  EXPECT_FALSE(slow({4, 4, 4}, {0, 0, 0}, {2, 2, 2}));
  EXPECT_FALSE(slow({4, 4, 4}, {8, 16, 4}, {2, 2, 2}));
  EXPECT_TRUE(slow({4, 4, 4}, {0, 0, 2}, {1, 1, 2}));  // the cut falls inside a chunk of the file
  EXPECT_FALSE(slow({4, 4, 4}, {0, 0, 2}, {2, 1, 1}));
  EXPECT_TRUE(slow({4, 4, 8}, {0, 0, 0}, {1, 1, 2}));
  EXPECT_TRUE(slow({3, 4, 4}, {0, 0, 0}, {2, 1, 1}));
  EXPECT_FALSE(slow({8, 8, 8}, {0, 0, 0}, {1, 1, 1}));
}

TEST(ReadPlan, OwnBoxesAreSlowWhereTheRunsOfAContiguousFileAreShort) {
  const Extent sample{4, 256, 256};
  const auto slow = [&](VolumeLayout file, bool channels_first, const Extent& grid) {
    file.layout.channels_first = channels_first;
    return boxes_are_slow(file, {}, sample, grid_boxes(sample, grid));
  };
  // Runs of 128 voxels x 4 channels x 2 bytes = 1 KiB; of 128 rows x 256 x 8 = 256 KiB (64 KiB channels first).
  const VolumeLayout file = contiguous(sample);
  EXPECT_TRUE(slow(file, false, {1, 1, 2}));
  EXPECT_FALSE(slow(file, false, {1, 2, 1}));
  EXPECT_FALSE(slow(file, false, {4, 1, 1}));
  EXPECT_FALSE(slow(file, false, {1, 8, 1}));  // 32 rows: exactly 64 KiB
  EXPECT_TRUE(slow(file, false, {1, 16, 1}));  // 32 KiB
  EXPECT_FALSE(slow(file, true, {1, 2, 1}));   // exactly 64 KiB
  EXPECT_TRUE(slow(file, true, {1, 4, 1}));
  EXPECT_TRUE(slow(file, true, {2, 1, 2}));
  VolumeLayout wide = contiguous({4, 256, 256}, 128);
  wide.file_element_bytes = 8;  // f64: 128 voxels are 128 KiB, 32 are 32 KiB
  EXPECT_FALSE(slow(wide, false, {1, 1, 2}));
  EXPECT_TRUE(slow(wide, false, {1, 1, 8}));
  // The rows of a sub-volume are short whoever reads them: only a cut in width makes them shorter.
  EXPECT_FALSE(boxes_are_slow(contiguous({512, 512, 512}), {0, 256, 256}, sample, grid_boxes(sample, {1, 16, 1})));
  EXPECT_TRUE(boxes_are_slow(contiguous({512, 512, 512}), {0, 256, 256}, sample, grid_boxes(sample, {1, 1, 2})));
}

}  // namespace
}  // namespace halograd
