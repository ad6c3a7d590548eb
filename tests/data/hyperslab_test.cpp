#include "halograd/data/hyperslab.hpp"

#include "data/voxel_files.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

using test::expected_voxels;
using test::same_bytes;
using test::VoxelFile;

VoxelFile volume(DType dtype, bool channels_first, std::int64_t channels) {
  VoxelFile file{.layout = test::contiguous({7, 6, 9}, channels)};
  file.layout.layout = {dtype, channels_first};
  return file;
}

TEST(Hyperslab, BytesAreVoxelsTimesChannelsTimesSize) {
  EXPECT_EQ(hyperslab_bytes({DType::u16, false}, 4, {{1, 2, 3}, {3, 5, 7}}), 2 * 3 * 4 * 4 * 2);
  EXPECT_EQ(hyperslab_bytes({DType::u8, true}, 3, Box::whole({2, 3, 4})), 72);
  EXPECT_EQ(hyperslab_bytes({DType::i16, false, true}, 2, Box::whole({2, 3, 4})), 24 * (2 * 2 + 1));
  EXPECT_EQ(voxel_bytes({DType::i16, false, true}, 2, Box::whole({2, 3, 4})), 24 * 2 * 2);
  EXPECT_EQ(hyperslab_bytes({DType::f32, true}, 1, {{2, 0, 0}, {2, 5, 5}}), 0);
}

// Every pair of boxes: what both hold arrives, all else stays.
TEST(Hyperslab, CopiesExactlyWhatBothBoxesHold) {
  const std::vector<Box> boxes{Box::whole({7, 6, 9}),  {{0, 0, 0}, {3, 6, 9}}, {{2, 0, 0}, {7, 6, 9}},
                               {{1, 2, 0}, {6, 5, 9}}, {{0, 1, 3}, {7, 4, 8}}, {{3, 3, 4}, {4, 4, 5}},
                               {{6, 5, 8}, {7, 6, 9}}, {{4, 2, 2}, {4, 2, 2}}};
  int copied = 0;
  for (const DType dtype : {DType::u8, DType::i16, DType::f32}) {
    for (const bool channels_first : {false, true}) {
      for (const std::int64_t channels : {1, 3}) {
        const VoxelFile file = volume(dtype, channels_first, channels);
        for (const Box& from : boxes) {
          for (const Box& to : boxes) {
            std::vector<std::byte> source = expected_voxels(file, 0, {}, from);
            // The target holds the voxels of another file, so that each one not written is known.
            VoxelFile other = file;
            other.offset = 100;
            std::vector<std::byte> target = expected_voxels(other, 0, {}, to);
            std::vector<std::byte> expected = target;
            const Box common = from.intersect(to);
            const std::int64_t size = dtype_size(dtype);
            const std::vector<std::byte> right = expected_voxels(file, 0, {}, to);
            const Extent e = to.extent();
            for (std::int64_t i = 0; i < to.volume() * channels; ++i) {
              const std::int64_t voxel = channels_first ? i % to.volume() : i / channels;
              const Index at{to.lo.d + voxel / (e.w * e.h), to.lo.h + voxel / e.w % e.h, to.lo.w + voxel % e.w};
              if (!common.contains(at)) continue;
              std::copy_n(right.begin() + i * size, size, expected.begin() + i * size);
              ++copied;
            }
            copy_hyperslab(file.layout.layout, channels, {from, source.data()}, {to, target.data()});
            EXPECT_TRUE(same_bytes(target, expected))
                << "channels " << channels << (channels_first ? " first" : " last") << ", " << size << " bytes each";
          }
        }
      }
    }
  }
  EXPECT_GT(copied, 50000);
}

// Voxels and labels are two volumes in one buffer.
TEST(Hyperslab, CopiesLabelsLikeVoxels) {
  const VoxelFile voxels = volume(DType::i16, true, 2);
  const VoxelFile labels = volume(DType::u8, false, 1);
  const auto both = [&](const Box& box) {
    std::vector<std::byte> bytes = expected_voxels(voxels, 0, {}, box);
    const std::vector<std::byte> behind = expected_voxels(labels, 0, {}, box);
    bytes.insert(bytes.end(), behind.begin(), behind.end());
    return bytes;
  };
  const Box whole = Box::whole({7, 6, 9});
  const Box part{{1, 2, 3}, {6, 5, 9}};
  std::vector<std::byte> cut(both(part).size());
  copy_hyperslab({DType::i16, true, true}, 2, {whole, both(whole).data()}, {part, cut.data()});
  EXPECT_TRUE(same_bytes(cut, both(part)));
  std::vector<std::byte> back = both(whole);
  std::ranges::fill(cut, std::byte{0x55});
  copy_hyperslab({DType::i16, true, true}, 2, {part, cut.data()}, {whole, back.data()});
  EXPECT_FALSE(same_bytes(back, both(whole)));
  copy_hyperslab({DType::i16, true, true}, 2, {part, both(part).data()}, {whole, back.data()});
  EXPECT_TRUE(same_bytes(back, both(whole)));
}

}  // namespace
}  // namespace halograd
