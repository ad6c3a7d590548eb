#pragma once

#include "halograd/kernels/dense.hpp"

#include <cstdint>

namespace halograd::cuda {

/// A product of matrices as BLAS has it, in column order: D [rows,columns] = op(A) op(B), where op may transpose. What
/// is transposed, or not, lies as it is multiplied: its leading dimension is its own number of rows.
struct MatmulShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t summed = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;  ///< adds a number to each row

  [[nodiscard]] constexpr std::int64_t a_rows() const { return transpose_a ? summed : rows; }
  [[nodiscard]] constexpr std::int64_t a_columns() const { return transpose_a ? rows : summed; }
  [[nodiscard]] constexpr std::int64_t b_rows() const { return transpose_b ? columns : summed; }
  [[nodiscard]] constexpr std::int64_t b_columns() const { return transpose_b ? summed : columns; }
};

// A matrix [N,I] in row order is [I,N] in column order.

/// y [N,O] of A = w [O,I] and B = x [N,I].
constexpr MatmulShape forward_shape(const DenseDesc& desc) {
  return {.rows = desc.out_features,
          .columns = desc.samples,
          .summed = desc.in_features,
          .transpose_a = true,
          .bias = true};
}

/// dx [N,I] of A = w [O,I] and B = dy [N,O].
constexpr MatmulShape backward_data_shape(const DenseDesc& desc) {
  return {.rows = desc.in_features, .columns = desc.samples, .summed = desc.out_features};
}

/// dw [O,I] of A = x [N,I] and B = dy [N,O].
constexpr MatmulShape backward_weights_shape(const DenseDesc& desc) {
  return {.rows = desc.in_features, .columns = desc.out_features, .summed = desc.samples, .transpose_b = true};
}

}  // namespace halograd::cuda
