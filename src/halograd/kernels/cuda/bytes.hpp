#pragma once

#include "halograd/kernels/convert.hpp"
#include "halograd/kernels/cuda/scratch.hpp"
#include "halograd/kernels/cuda/segmentation_element.hpp"
#include "halograd/kernels/optimizer.hpp"
#include "halograd/kernels/region_copy.hpp"

#include <cstdint>

namespace halograd::cuda {

/// Bytes that a kernel moves between a GPU and its memory, beside the fewest that the operation could: every number
/// that it needs read once, every result written once.
struct KernelBytes {
  std::int64_t read = 0;
  std::int64_t written = 0;
  std::int64_t least_read = 0;
  std::int64_t least_written = 0;
  [[nodiscard]] constexpr double overhead() const {
    return static_cast<double>(read + written) / static_cast<double>(least_read + least_written);
  }
};

/// A GPU's memory is read and written in sectors.
constexpr std::int64_t sector_bytes = 32;

/// Bytes of the sectors that a region touches in a buffer which begins with one.
constexpr std::int64_t region_sectors(const RegionCopy& copy, const VoxelLayout& layout) {
  const std::int64_t size = dtype_size(copy.type);
  const Extent extent = copy.region.extent();
  const bool dense = layout.pitch == copy.channels;
  const std::int64_t runs = dense ? 1 : extent.w;
  const std::int64_t length = (dense ? extent.w : 1) * copy.channels * size;
  std::int64_t sectors = 0;
  std::int64_t last = -1;
  for (std::int64_t row = 0; row < copy.samples * extent.d * extent.h; ++row) {
    for (std::int64_t run = 0; run < runs; ++run) {
      const Index at{copy.region.lo.d + row / extent.h % extent.d, copy.region.lo.h + row % extent.h,
                     copy.region.lo.w + run};
      const std::int64_t begin = layout.offset(row / (extent.d * extent.h), at) * size;
      const std::int64_t first = begin / sector_bytes;
      const std::int64_t end = (begin + length - 1) / sector_bytes;
      // Runs come in the order of their addresses: a sector that two share is the last one's.
      sectors += end - (first > last ? first - 1 : last);
      last = end;
    }
  }
  return sectors * sector_bytes;
}

constexpr KernelBytes region_bytes(const RegionCopy& copy, bool add) {
  const std::int64_t numbers = copy.samples * copy.region.volume() * copy.channels * dtype_size(copy.type);
  if (numbers == 0) return {};
  const std::int64_t to = region_sectors(copy, copy.to);
  return {.read = region_sectors(copy, copy.from) + (add ? to : 0),
          .written = to,
          .least_read = add ? 2 * numbers : numbers,
          .least_written = numbers};
}

constexpr KernelBytes adam_bytes(std::int64_t count) {
  const auto step = static_cast<std::int64_t>(sizeof(AdamStep));
  return {16 * count + step, 12 * count, 16 * count + step, 12 * count};
}

constexpr KernelBytes convert_bytes(const ConvertDesc& desc) {
  const std::int64_t numbers = desc.source.intersect(desc.dst).volume() * desc.channels;
  const std::int64_t read = numbers * dtype_size(desc.dtype);
  const std::int64_t written = numbers * dtype_size(desc.dst_type);
  return {read, written, read, written};
}

/// Both stages.
inline KernelBytes segmentation_sums_bytes(const SegmentationLossDesc& desc) {
  const std::int64_t voxels = desc.samples * desc.voxels;
  const std::int64_t needed = voxels * (desc.classes * dtype_size(desc.type) + 1);
  const std::int64_t partial = 8 * desc.samples * segmentation_pieces(desc, scratch_doubles) * (2 + 3 * desc.classes);
  const std::int64_t sums = 8 * segmentation_sum_count(desc, desc.samples);
  return {needed + partial, partial + sums, needed, sums};
}

inline KernelBytes segmentation_gradient_bytes(const SegmentationLossDesc& desc) {
  const std::int64_t voxels = desc.samples * desc.voxels;
  const std::int64_t logits = voxels * desc.classes * dtype_size(desc.type);
  const std::int64_t factors =
      static_cast<std::int64_t>(sizeof(SegmentationOutcome)) + (desc.dice != 0 ? 16 * desc.samples * desc.classes : 0);
  return {logits + voxels + factors, logits, logits + voxels + factors, logits};
}

}  // namespace halograd::cuda
