#pragma once

#include "halograd/tensor/box.hpp"

namespace halograd {

/// How one output voxel looks at its input: output j reads inputs j·stride − padding … + kernel − 1 in each dimension.
/// Transposed, the other way round: input i reaches outputs i·stride − padding … + kernel − 1.
struct Window {
  Extent kernel = Extent::cube(1);
  Extent stride = Extent::cube(1);
  Extent padding;
  Extent output_padding{};  ///< of a transposed window: outputs more at the high end than those that inputs centre on
  bool transposed = false;

  /// Output voxels over `input` voxels (rounded down, as everywhere): 0 or less where the window does not fit.
  [[nodiscard]] Extent output_extent(const Extent& input) const;

  /// The input voxel an output lives with: j·s − p + ⌊(k−1)/2⌋. Not of a transposed window, whose output o lives with
  /// input ⌊o / s⌋.
  [[nodiscard]] std::int64_t home(int dimension, std::int64_t output) const {
    return output * stride[dimension] - padding[dimension] + (kernel[dimension] - 1) / 2;
  }

  /// The inputs that the outputs `output` read, inside a volume of `input` voxels.
  [[nodiscard]] Box input_needed(const Box& output, const Extent& input) const;

  friend bool operator==(const Window&, const Window&) = default;
};

}  // namespace halograd
