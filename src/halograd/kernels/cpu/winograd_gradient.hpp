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

  /// The gradient as [27, I, O], in scratch, which is as WinogradPass has it. x and dy are of `in` and `out`.
  const float* run(const float* x, const float* dy, float* scratch);

  [[nodiscard]] std::int64_t scratch_elements() const;
  [[nodiscard]] std::int64_t held_bytes() const;

private:
  void expand_block(std::int64_t block, int point, const float* x, const float* dy, float* inputs,
                    float* gradients) const;
  void add_products(const float* inputs, const float* gradients, float* sums, bool accumulate);
  void collapse(int point, const float* sums, float* taps) const;

  struct Products {
    LoneProduct assign;
    LoneProduct add;
  };

  WinogradShape shape_;
  TileWindows<const float, winograd_side> inputs_;
  TileWindows<const float, winograd_tile> gradients_;
  std::int64_t blocks_;
  std::int64_t rows_;               ///< tiles of a block
  LineVector zeros_;                ///< a voxel outside x or dy
  std::vector<Products> products_;  ///< one a thread
};

}  // namespace halograd::cpu
