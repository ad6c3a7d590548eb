#pragma once

#include "halograd/kernels/chain.hpp"

#include <cstddef>

namespace halograd::cpu {

/// A dense [N,D,H,W,C] buffer that holds the voxels `box`; `voxel` finds the channels of one by its global index.
template <typename T>
struct BoxBuffer {
  T* data = nullptr;
  Box box;
  std::int64_t channels = 0;

  [[nodiscard]] T* voxel(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) const {
    const Extent extent = box.extent();
    const std::int64_t row = ((n * extent.d + d - box.lo.d) * extent.h + h - box.lo.h) * extent.w;
    return data + (row + w - box.lo.w) * channels;
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
class InputRow {
public:
  InputRow(const ChainDesc& desc, const float* y, const FaceBuffers<const float>& faces, std::int64_t n, std::int64_t d,
           std::int64_t h);

  /// The row from in.lo.w, that far beside it that in.hi.w is reached: [W,C].
  [[nodiscard]] const float* body() const { return body_; }
  [[nodiscard]] const float* voxel(std::int64_t w) const;

private:
  std::int64_t channels_;
  Range own_;
  std::int64_t face_lo_;
  const float* body_;
  const float* before_ = nullptr;
  const float* after_ = nullptr;
};

}  // namespace halograd::cpu
