#include "halograd/data/read_requests.hpp"

#include "data/voxel_files.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

using test::chunked;
using test::contiguous;

void expect_box_once(const std::vector<Box>& parts, const Box& box) {
  std::int64_t voxels = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    voxels += parts[i].volume();
    EXPECT_TRUE(box.contains(parts[i]));
    for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(parts[i].intersect(parts[j]).empty());
  }
  EXPECT_EQ(voxels, box.volume());
}

TEST(ReadRequests, OneWhereItFitsAndNoneForNothing) {
  const VolumeLayout file = contiguous({8, 8, 8});
  const Box box{{1, 0, 0}, {5, 8, 8}};  // 256 voxels of 8 bytes
  EXPECT_EQ(read_requests(file, {}, box, 2048), std::vector<Box>{box});
  EXPECT_TRUE(read_requests(file, {}, {{3, 0, 0}, {3, 8, 8}}, 2048).empty());
}

TEST(ReadRequests, HalvesTheSlowestDimension) {
  const VolumeLayout file = contiguous({8, 8, 8});
  EXPECT_EQ(read_requests(file, {}, {{1, 0, 0}, {5, 8, 8}}, 1024),
            (std::vector<Box>{{{1, 0, 0}, {3, 8, 8}}, {{3, 0, 0}, {5, 8, 8}}}));
  EXPECT_EQ(read_requests(file, {}, {{1, 0, 0}, {2, 8, 8}}, 256),
            (std::vector<Box>{{{1, 0, 0}, {2, 4, 8}}, {{1, 4, 0}, {2, 8, 8}}}));
}

TEST(ReadRequests, CountsTheLargerOfTheTypesInFileAndInMemory) {
  VolumeLayout file = contiguous({4, 1, 1}, 1);
  file.layout.dtype = DType::f32;
  file.file_element_bytes = 8;
  EXPECT_EQ(read_requests(file, {}, Box::whole({4, 1, 1}), 16).size(), 2U);
  file.layout.dtype = DType::i16;
  file.file_element_bytes = 1;
  EXPECT_EQ(read_requests(file, {}, Box::whole({4, 1, 1}), 4).size(), 2U);
}

TEST(ReadRequests, CutsBetweenChunksOfTheFileAsLongAsItCan) {
  // From voxel 3 of the file on: its chunks end 2, 7, 12 after the sample's beginning.
  const VolumeLayout file = chunked({20, 20, 20}, {5, 20, 20}, 1);
  const Box box = Box::whole({13, 1, 1});
  EXPECT_EQ(read_requests(file, {3, 0, 0}, box, 14),
            (std::vector<Box>{{{0, 0, 0}, {7, 1, 1}}, {{7, 0, 0}, {13, 1, 1}}}));
  EXPECT_EQ(read_requests(file, {3, 0, 0}, box, 12),
            (std::vector<Box>{{{0, 0, 0}, {2, 1, 1}}, {{2, 0, 0}, {7, 1, 1}}, {{7, 0, 0}, {13, 1, 1}}}));
  std::int64_t bytes = 0;
  for (const Box& part : read_requests(file, {3, 0, 0}, box, 12)) bytes += bytes_taken(file, 0, {3, 0, 0}, part);
  EXPECT_EQ(bytes, bytes_taken(file, 0, {3, 0, 0}, box)) << "a chunk is read twice";
}

TEST(ReadRequests, AnyLimitGivesTheBoxOnceInPiecesThatFit) {
  for (const VolumeLayout& file : {contiguous({13, 10, 7}, 3), chunked({13, 10, 7}, {4, 3, 5}, 3)}) {
    const Index origin{1, 2, 0};
    const Box box{{1, 0, 1}, {11, 8, 7}};
    for (const std::int64_t limit : {6, 100, 360, 1000, 2000, 4000}) {
      const auto parts = read_requests(file, origin, box, limit);
      expect_box_once(parts, box);
      for (const Box& part : parts) EXPECT_LE(part.volume() * 3 * 2, limit);
    }
  }
}

TEST(ReadRequests, BytesTakenAreTheBoxOrWholeChunksInsideTheFile) {
  EXPECT_EQ(bytes_taken(contiguous({13, 10, 7}), 0, {}, {{0, 0, 0}, {2, 3, 4}}), 24 * 4 * 2);
  VolumeLayout file = chunked({13, 10, 7}, {4, 4, 4});
  file.file_element_bytes = 8;
  // d 3..5 touches chunks 0 and 1 (8 planes); h 8 the last chunk (2 rows inside); w 3..5 both (all 7).
  EXPECT_EQ(bytes_taken(file, 0, {0, 0, 0}, {{3, 8, 3}, {5, 9, 5}}), 8 * 2 * 7 * 4 * 8);
  EXPECT_EQ(bytes_taken(file, 0, {3, 8, 3}, {{0, 0, 0}, {2, 1, 2}}), 8 * 2 * 7 * 4 * 8);
  EXPECT_EQ(bytes_taken(file, 0, {}, {{12, 0, 0}, {13, 1, 1}}), 1 * 4 * 4 * 4 * 8);
  EXPECT_EQ(bytes_taken(file, 0, {}, {{2, 2, 2}, {2, 5, 5}}), 0);
  file.stacked = true;
  file.entries = 5;
  file.chunk_entries = 2;
  EXPECT_EQ(bytes_taken(file, 3, {}, {{12, 0, 0}, {13, 1, 1}}), 2 * 1 * 4 * 4 * 4 * 8);
  EXPECT_EQ(bytes_taken(file, 4, {}, {{12, 0, 0}, {13, 1, 1}}), 1 * 4 * 4 * 4 * 8);  // the file ends with it
}

}  // namespace
}  // namespace halograd
