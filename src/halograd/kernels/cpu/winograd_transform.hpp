#pragma once

#include "halograd/tensor/shape.hpp"

#include <cstdint>

namespace halograd::cpu {

/// Outputs of a tile. Four in depth would save another quarter of the multiplications and up to a tenth of the time,
/// for 1.6 times the rounding errors.
constexpr Extent winograd_extent{2, 4, 4};
constexpr int winograd_tile = 4;  ///< in height and width
constexpr int winograd_side = 6;  ///< points in height and in width
constexpr int winograd_points = winograd_side * winograd_side;

/// Matrices of a one-dimensional Winograd convolution of kernel 3 (Lavin and Gray 2016, section 4.1; F(2, 3)):
/// y = output · ((weights · w) ∘ (input · x)) for `outputs` y, `points` = outputs + 2 values x, and 3 w.
struct WinogradAxis {
  static constexpr int outputs = 2;
  static constexpr int points = 4;
  float input[points][points];
  float output[outputs][points];
  float weights[points][3];
};

/// That of depth, for the points 0, 1, −1 and infinity.
constexpr WinogradAxis winograd_depth{.input = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}},
                                      .output = {{1, 1, 1, 0}, {0, 1, -1, 1}},
                                      .weights = {{1, 0, 0}, {0.5F, 0.5F, 0.5F}, {0.5F, -0.5F, 0.5F}, {0, 0, 1}}};

/// A sum of planes of voxels, times their coefficients: what one point in depth takes from a tile, or gives to it.
/// Pointers go to the first channel of each voxel: 6×6 or 4×4 a plane.
template <typename T>
struct WinogradPlanes {
  int count = 0;
  float coefficients[2] = {};
  T* voxels[2][winograd_points] = {};
};

/// Transforms in height and width of one tile and one point in depth; channels are a multiple of 16, and `pitch`
/// numbers lie between a tile's points. Weights are [27 taps][elements], their points [36][elements].
struct WinogradKernels {
  const char* level;
  /// points = Bᵀ (Σ planes) B, planes of 6×6.
  void (*expand_input)(const WinogradPlanes<const float>& planes, std::int64_t channels, float* points,
                       std::int64_t pitch);
  /// points = A (Σ planes) Aᵀ, planes of 4×4.
  void (*expand_gradient)(const WinogradPlanes<const float>& planes, std::int64_t channels, float* points,
                          std::int64_t pitch);
  /// planes = coefficients · Aᵀ points A, or +=; planes of 4×4.
  void (*collapse_output)(const float* points, std::int64_t pitch, std::int64_t channels,
                          const WinogradPlanes<float>& planes, bool accumulate);
  /// points = G (Σ depth · taps) Gᵀ for elements [begin, end).
  void (*expand_weights)(const float* taps, const float* depth, std::int64_t elements, std::int64_t begin,
                         std::int64_t end, float* points);
  /// taps = depth · Gᵀ points G, or +=, for elements [begin, end).
  void (*collapse_weights)(const float* points, const float* depth, std::int64_t elements, std::int64_t begin,
                           std::int64_t end, float* taps, bool accumulate);
};

/// For this processor.
const WinogradKernels& winograd_kernels();

}  // namespace halograd::cpu
