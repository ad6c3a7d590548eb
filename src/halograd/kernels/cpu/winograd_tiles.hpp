#pragma once

#include "halograd/kernels/cpu/winograd_transform.hpp"
#include "halograd/tensor/shape.hpp"

#include <cstdint>

namespace halograd::cpu {

/// A convolution of kernel 3 and stride 1 from one dense NDHWC buffer to another, as Conv3dDesc has it.
struct WinogradShape {
  std::int64_t samples = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Extent in;
  Extent out;
  Extent pad_lo;

  [[nodiscard]] std::int64_t weights() const { return in_channels * out_channels; }
  /// Tiles of one sample; those at the high faces may stick out.
  [[nodiscard]] Extent tiles() const {
    Extent result;
    for (int i = 0; i < 3; ++i) result[i] = (out[i] + winograd_extent[i] - 1) / winograd_extent[i];
    return result;
  }
  [[nodiscard]] std::int64_t all_tiles() const { return samples * tiles().volume(); }
};

/// The voxels of a dense NDHWC buffer that tiles read or write, a plane of side² in height and width at a time. Tile
/// (d, h, w) has its first voxel at winograd_extent · (d, h, w) − shift.
template <typename T, int side>
class TileWindows {
public:
  TileWindows(const Extent& extent, std::int64_t channels, const Extent& tiles, const Extent& shift)
      : extent_(extent), channels_(channels), tiles_(tiles), shift_(shift) {}

  /// The planes of tile number `index` that have a coefficient other than 0, of `count`; voxels outside the buffer are
  /// the row `outside`.
  void select(T* data, T* outside, std::int64_t index, const float* coefficients, int count,
              WinogradPlanes<T>& result) const {
    result.count = 0;
    for (int k = 0; k < count; ++k) {
      if (coefficients[k] == 0) continue;
      plane(data, outside, index, k, result.voxels[result.count]);
      result.coefficients[result.count++] = coefficients[k];
    }
  }

private:
  void plane(T* data, T* outside, std::int64_t index, int depth, T** voxels) const {
    const std::int64_t w0 = index % tiles_.w * winograd_extent.w - shift_.w;
    const std::int64_t h0 = index / tiles_.w % tiles_.h * winograd_extent.h - shift_.h;
    const std::int64_t d = index / (tiles_.w * tiles_.h) % tiles_.d * winograd_extent.d - shift_.d + depth;
    const std::int64_t n = index / tiles_.volume();
    for (std::int64_t i = 0; i < side; ++i) {
      const std::int64_t h = h0 + i;
      const bool in_line = d >= 0 && d < extent_.d && h >= 0 && h < extent_.h;
      const std::int64_t line = ((n * extent_.d + d) * extent_.h + h) * extent_.w;
      for (std::int64_t j = 0; j < side; ++j) {
        const std::int64_t w = w0 + j;
        voxels[i * side + j] = in_line && w >= 0 && w < extent_.w ? data + (line + w) * channels_ : outside;
      }
    }
  }

  Extent extent_;
  std::int64_t channels_;
  Extent tiles_;
  Extent shift_;
};

}  // namespace halograd::cpu
