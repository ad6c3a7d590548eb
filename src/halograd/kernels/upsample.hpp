#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"
#include "halograd/tensor/layout.hpp"
#include "halograd/tensor/window.hpp"

namespace halograd {

enum class UpsampleKind {
  nearest,    ///< output o is input ⌊o / factor⌋
  trilinear,  ///< linear in each dimension at (o + ½) / factor − ½, held at the border (PyTorch: align_corners off)
};

/// Makes a volume larger by a whole factor a dimension, on one rank.
struct UpsampleDesc {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  UpsampleKind kind = UpsampleKind::nearest;
  Extent factor = Extent::cube(2);
  Extent in_extent;         ///< the whole volume of x
  VoxelLayout src;          ///< of x: what the outputs `out` read, neighbours' voxels included
  Box out;                  ///< the outputs of this rank
  VoxelLayout dst;          ///< of y; holds `out` and perhaps margins, which are not written
  DType type = DType::f32;  ///< of x, y and their gradients: f32 or bf16
};

/// The transposed window through which outputs see inputs: what decides halos.
inline Window upsample_window(UpsampleKind kind, const Extent& factor) {
  Window window{.kernel = factor, .stride = factor, .padding = {}, .transposed = true};
  if (kind == UpsampleKind::nearest) return window;
  // Input i weighs in where |(o + ½) / f − ½ − i| < 1: from i·f − ⌊f/2⌋ on, 2f outputs or (odd f) one less.
  for (int i = 0; i < 3; ++i) {
    window.kernel[i] = 2 * factor[i] - factor[i] % 2;
    window.padding[i] = factor[i] / 2;
  }
  return window;
}

void upsample(const Queue& queue, const UpsampleDesc& desc, const void* x, void* y);
/// dx, laid out as src, margins included (there: what this rank adds to its neighbours' gradients), assigned.
/// dy: as dst; only `out` is read.
void upsample_backward(const Queue& queue, const UpsampleDesc& desc, const void* dy, void* dx);

}  // namespace halograd
