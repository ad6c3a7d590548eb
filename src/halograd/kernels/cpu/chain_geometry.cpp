#include "halograd/kernels/cpu/chain_geometry.hpp"

#include "halograd/core/bf16.hpp"

namespace halograd::cpu {
namespace {

Box widened_before(const ChainDesc& desc, int dimension) {
  Box box = desc.in;
  for (int i = 0; i < dimension; ++i) {
    box.lo[i] -= desc.faces.lo[i];
    box.hi[i] += desc.faces.hi[i];
  }
  return box;
}

/// The first of the row's own voxels, in y or, where a neighbour along d or h holds the row, in its face.
template <typename T>
Row<const T> body_of(const ChainDesc& desc, const T* y, const FaceBuffers<const T>& faces, std::int64_t n,
                     std::int64_t d, std::int64_t h) {
  const Index at{d, h, desc.in.lo.w};
  for (int i = 1; i >= 0; --i) {  // the later dimension's faces hold the corners
    const auto slot = static_cast<std::size_t>(i);
    if (at[i] < desc.in.lo[i]) {
      return VoxelBuffer<const T>{faces.lo[slot], {face_box(desc, i, Side::lo), desc.channels}}.row(n, d, h, at.w);
    }
    if (at[i] >= desc.in.hi[i]) {
      return VoxelBuffer<const T>{faces.hi[slot], {face_box(desc, i, Side::hi), desc.channels}}.row(n, d, h, at.w);
    }
  }
  return VoxelBuffer<const T>{y, desc.src}.row(n, d, h, at.w);
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

}  // namespace

Box face_box(const ChainDesc& desc, int dimension, Side side) {
  Box box = widened_before(desc, dimension);
  if (side == Side::lo) {
    box.hi[dimension] = desc.in.lo[dimension];
    box.lo[dimension] = box.hi[dimension] - desc.faces.lo[dimension];
  } else {
    box.lo[dimension] = desc.in.hi[dimension];
    box.hi[dimension] = box.lo[dimension] + desc.faces.hi[dimension];
  }
  return box;
}

Box received_box(const ChainDesc& desc, int dimension, Side side) {
  Box box = widened_before(desc, dimension);
  if (side == Side::lo) {
    box.hi[dimension] = box.lo[dimension] + desc.returned.lo[dimension];
  } else {
    box.lo[dimension] = box.hi[dimension] - desc.returned.hi[dimension];
  }
  return box;
}

Range window_range(const ChainDesc& desc, int dimension, std::int64_t output) {
  const std::int64_t first = output * desc.window.stride[dimension] - desc.window.padding[dimension];
  return Range{first, first + desc.window.kernel[dimension]}.intersect({0, desc.in_extent[dimension]});
}

Range readers(const ChainDesc& desc, int dimension, const Range& inputs, const Range& outputs) {
  const std::int64_t stride = desc.window.stride[dimension];
  const std::int64_t padding = desc.window.padding[dimension];
  const std::int64_t kernel = desc.window.kernel[dimension];
  const Range reading{floor_divide(inputs.lo + padding - kernel, stride) + 1,
                      floor_divide(inputs.hi - 1 + padding, stride) + 1};
  return reading.intersect(outputs);
}

template <typename T>
InputRow<T>::InputRow(const ChainDesc& desc, const T* y, const FaceBuffers<const T>& faces, std::int64_t n,
                      std::int64_t d, std::int64_t h)
    : channels_(desc.channels),
      own_(range_of(desc.in, 2)),
      face_lo_(desc.faces.lo.w),
      body_(body_of(desc, y, faces, n, d, h)) {
  if (faces.lo[2] != nullptr) {
    const Box box = face_box(desc, 2, Side::lo);
    before_ = VoxelBuffer<const T>{faces.lo[2], {box, channels_}}.voxel(n, d, h, box.lo.w);
  }
  if (faces.hi[2] != nullptr) {
    const Box box = face_box(desc, 2, Side::hi);
    after_ = VoxelBuffer<const T>{faces.hi[2], {box, channels_}}.voxel(n, d, h, box.lo.w);
  }
}

template <typename T>
const T* InputRow<T>::voxel(std::int64_t w) const {
  if (w < own_.lo) return before_ + (w - own_.lo + face_lo_) * channels_;
  if (w >= own_.hi) return after_ + (w - own_.hi) * channels_;
  return body_.data + (w - own_.lo) * body_.pitch;
}

template class InputRow<float>;
template class InputRow<Bf16>;

}  // namespace halograd::cpu
