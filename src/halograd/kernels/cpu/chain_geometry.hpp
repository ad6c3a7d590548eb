#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/cpu/chain_rows.hpp"

#include <algorithm>
#include <cstddef>

namespace halograd::cpu {

/// A tensor in memory; `voxel` finds the channels of one voxel by its global index, `row` those from it on along w.
template <typename T>
struct VoxelBuffer {
  T* data = nullptr;
  VoxelLayout layout;

  [[nodiscard]] T* voxel(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) const {
    return data + layout.offset(n, {d, h, w});
  }
  [[nodiscard]] Row<T> row(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) const {
    return {voxel(n, d, h, w), layout.pitch};
  }
};

/// A half-open range of indices.
struct Range {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  [[nodiscard]] std::int64_t size() const { return hi > lo ? hi - lo : 0; }
  [[nodiscard]] Range intersect(const Range& other) const { return {std::max(lo, other.lo), std::min(hi, other.hi)}; }
};

inline Range range_of(const Box& box, int dimension) {
  return {box.lo[dimension], box.hi[dimension]};
}

/// Whether z is y and a is z, so that the gradient of y is that of a.
inline bool leaves_y_as_it_is(const ChainDesc& desc) {
  return !desc.normalise && desc.negative_slope == 1;
}

enum class Side { lo, hi };

/// The voxels a face buffer holds: neighbours' along `dimension`, outside `in`.
Box face_box(const ChainDesc& desc, int dimension, Side side);

/// The voxels a received buffer speaks of: the own ones, inside `in`, that the neighbour along `dimension` reads.
Box received_box(const ChainDesc& desc, int dimension, Side side);

/// The voxels output `output` reads along `dimension`, inside the volume.
Range window_range(const ChainDesc& desc, int dimension, std::int64_t output);

/// The outputs among `outputs` that read any of the voxels `inputs` along `dimension`.
Range readers(const ChainDesc& desc, int dimension, const Range& inputs, const Range& outputs);

/// One row of y along w: own voxels with the neighbours' around them. Voxels outside the volume are in none.
template <typename T>
class InputRow {
public:
  InputRow(const ChainDesc& desc, const T* y, const FaceBuffers<const T>& faces, std::int64_t n, std::int64_t d,
           std::int64_t h);

  [[nodiscard]] const T* voxel(std::int64_t w) const;
  /// The row from voxel `w` on, as far as in.hi.w where that is an own one.
  [[nodiscard]] Row<const T> from(std::int64_t w) const { return {voxel(w), body_.pitch}; }

private:
  std::int64_t channels_;
  Range own_;
  std::int64_t face_lo_;
  Row<const T> body_;  ///< from in.lo.w
  const T* before_ = nullptr;
  const T* after_ = nullptr;
};

}  // namespace halograd::cpu
