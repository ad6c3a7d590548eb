#include "halograd/kernels/cuda/bytes.hpp"
#include "kernels/support.hpp"

namespace halograd::test {
namespace {

/// A face of `thickness` voxels in W of a 128³ tensor with a margin of one voxel a side, packed into a message.
cuda::KernelBytes packed_face(std::int64_t channels, std::int64_t thickness, DType type) {
  const VoxelLayout tensor{{{-1, -1, -1}, {129, 129, 129}}, channels};
  const Box face{{0, 0, 0}, {128, 128, thickness}};
  return cuda::region_bytes({1, channels, tensor, {face, channels}, face, type}, false);
}

TEST(KernelBytes, FacesCostTheSectorsTheyTouch) {
  // 16 channels of four bytes: two whole sectors a voxel.
  const cuda::KernelBytes wide = packed_face(16, 1, DType::f32);
  EXPECT_EQ(wide.least_read, 128 * 128 * 64);
  EXPECT_EQ(wide.read, wide.least_read);
  EXPECT_EQ(wide.written, wide.least_written);
  EXPECT_EQ(wide.overhead(), 1);
  // 4 channels of two bytes: a sector for a quarter of one, which no order of loads can avoid; the message has none.
  const cuda::KernelBytes thin = packed_face(4, 1, DType::bf16);
  EXPECT_EQ(thin.read, 4 * thin.least_read);
  EXPECT_EQ(thin.written, thin.least_written);
  EXPECT_EQ(cuda::region_bytes({}, true).read, 0);
}

TEST(KernelBytes, AddingReadsItsTargetToo) {
  const VoxelLayout layout{{{0, 0, 0}, {8, 8, 8}}, 16};
  const RegionCopy copy{2, 16, layout, layout, {{0, 0, 0}, {8, 8, 8}}};
  const std::int64_t size = 2 * 512 * 64;
  EXPECT_EQ(cuda::region_bytes(copy, true).read, 2 * size);
  EXPECT_EQ(cuda::region_bytes(copy, true).least_read, 2 * size);
  EXPECT_EQ(cuda::region_bytes(copy, false).read, size);
}

TEST(KernelBytes, AdamReadsFourNumbersAndWritesThree) {
  const cuda::KernelBytes bytes = cuda::adam_bytes(9437636);
  EXPECT_EQ(bytes.written, 3 * 4 * 9437636);
  EXPECT_EQ(bytes.read, 4 * 4 * 9437636 + 40);
  EXPECT_EQ(bytes.overhead(), 1);
}

TEST(KernelBytes, SegmentationReadsLogitsOnceAPass) {
  const SegmentationLossDesc desc{
      .type = DType::bf16, .samples = 1, .voxels = 128 * 128 * 128, .classes = 3, .dice = 1};
  const cuda::KernelBytes sums = cuda::segmentation_sums_bytes(desc);
  EXPECT_EQ(sums.least_read, desc.voxels * 7);
  EXPECT_LT(sums.overhead(), 1.02);
  const cuda::KernelBytes gradient = cuda::segmentation_gradient_bytes(desc);
  EXPECT_EQ(gradient.read, desc.voxels * 7 + 16 + 48);
  EXPECT_EQ(gradient.written, desc.voxels * 6);
}

TEST(KernelBytes, ConversionReadsSixteenBitsAndWritesWhatTheLayerReads) {
  const Box box = Box::whole({128, 128, 128});
  const ConvertDesc desc{.dst_type = DType::bf16, .channels = 4, .source = box, .dst = box};
  EXPECT_EQ(cuda::convert_bytes(desc).read, 4 * 2 * box.volume());
  EXPECT_EQ(cuda::convert_bytes(desc).written, 4 * 2 * box.volume());
  EXPECT_EQ(cuda::convert_bytes(desc).overhead(), 1);
}

}  // namespace
}  // namespace halograd::test
