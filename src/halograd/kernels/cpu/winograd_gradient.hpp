#pragma once

#include "halograd/kernels/cpu/winograd_parts.hpp"
#include "halograd/kernels/cpu/winograd_tiles.hpp"

namespace halograd::cpu {

/// The gradient of a WinogradPass's weights: for each point, the product of a block's [I, tiles] and [tiles, O], summed
/// over blocks, transformed back at the end. All threads work on a block, first on its tiles, then on its points, so
/// that each sum is one thread's and comes out the same for any number of threads.
class WinogradGradient {
public:
  explicit WinogradGradient(const WinogradShape& shape);

  /// Assigns taps(). x and dy are of `in` and `out`; scratch as WinogradPass has it.
  void run(const float* x, const float* dy, float* scratch);
  /// [27, I, O]
  [[nodiscard]] const float* taps() const { return taps_.data(); }

  [[nodiscard]] std::int64_t scratch_elements() const;
  [[nodiscard]] std::int64_t held_bytes() const;

private:
  void expand_block(std::int64_t block, int point, const float* x, const float* dy, float* inputs,
                    float* gradients) const;
  void add_products(const float* inputs, const float* gradients, float* sums, bool accumulate);
  void collapse(int point, const float* sums);

  struct Products {
    LoneProduct assign;
    LoneProduct add;
  };

  WinogradShape shape_;
  TileWindows<const float, winograd_side> inputs_;
  TileWindows<const float, winograd_tile> gradients_;
  bool holds_sums_;
  std::int64_t blocks_;
  std::int64_t rows_;  ///< tiles of a block
  LineVector zeros_;   ///< a voxel outside x or dy
  LineVector taps_;
  LineVector sums_;                 ///< [depth points or 1, 36, I, O]
  std::vector<Products> products_;  ///< one a thread
};

}  // namespace halograd::cpu
