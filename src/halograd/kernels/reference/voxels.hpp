#pragma once

#include "halograd/tensor/box.hpp"

namespace halograd::reference {

/// A dense [N,D,H,W,C] buffer that holds the voxels `box`; `voxel` finds the channels of one by its global index.
template <typename T>
struct Voxels {
  T* data = nullptr;
  Box box;
  std::int64_t channels = 0;

  [[nodiscard]] T* voxel(std::int64_t n, const Index& at) const {
    const Extent extent = box.extent();
    const std::int64_t d = at.d - box.lo.d;
    const std::int64_t h = at.h - box.lo.h;
    const std::int64_t w = at.w - box.lo.w;
    return data + (((n * extent.d + d) * extent.h + h) * extent.w + w) * channels;
  }
};

/// Calls `body(index)` for every voxel of the box, width fastest.
template <typename Body>
void for_each_voxel(const Box& box, const Body& body) {
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) body(Index{d, h, w});
    }
  }
}

}  // namespace halograd::reference
