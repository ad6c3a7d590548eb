#pragma once

#include "halograd/tensor/box.hpp"

namespace halograd {

/// How a tensor's voxels lie in memory: [N, box, pitch], of which the tensor has the first channels. A pitch wider than
/// the channels makes the tensor a channel slice of a wider one; pointers go to the slice's first channel.
struct VoxelLayout {
  Box box;                 ///< the voxels there is room for, in global indices
  std::int64_t pitch = 0;  ///< numbers from one voxel to the next

  /// Where voxel `at` of sample `n` begins.
  [[nodiscard]] constexpr std::int64_t offset(std::int64_t n, const Index& at) const {
    const Extent extent = box.extent();
    const std::int64_t row = (n * extent.d + at.d - box.lo.d) * extent.h + at.h - box.lo.h;
    return (row * extent.w + at.w - box.lo.w) * pitch;
  }
  [[nodiscard]] constexpr std::int64_t sample_elements() const { return box.volume() * pitch; }
  friend bool operator==(const VoxelLayout&, const VoxelLayout&) = default;
};

}  // namespace halograd
