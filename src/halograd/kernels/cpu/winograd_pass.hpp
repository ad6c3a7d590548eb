#pragma once

#include "halograd/kernels/cpu/winograd_parts.hpp"
#include "halograd/kernels/cpu/winograd_tiles.hpp"

namespace halograd::cpu {

/// y = conv(x, w) by tiles: each is transformed to 36 points a depth point, of each of which a block of tiles makes a
/// product of [tiles, I] with the weights' [I, O], transformed back into y. A thread takes a block from x to y while it
/// is in its cache. Convolutions that give dx are such with the roles of channels and extents exchanged and the taps
/// reversed.
class WinogradPass {
public:
  explicit WinogradPass(const WinogradShape& shape);

  /// [27, I, O], to be filled before prepare().
  float* taps() { return taps_.data(); }
  /// Takes what taps() holds.
  void prepare();
  /// Assigns y. scratch: scratch_elements() numbers that begin at a cache line, of any finite value.
  void run(const float* x, float* y, float* scratch);

  [[nodiscard]] std::int64_t scratch_elements() const;
  [[nodiscard]] std::int64_t held_bytes() const;

private:
  [[nodiscard]] std::int64_t block_scratch() const;
  [[nodiscard]] std::int64_t blocks_scratch() const;
  void transform_weights(int order, float* points);
  /// All tiles, for the depth points [begin, end), whose weights are `points`.
  void walk(int begin, int end, const float* points, const float* x, float* y, float* scratch);
  void run_block(std::int64_t block, int order, const float* weights, const float* x, float* y, LoneProduct& product,
                 float* scratch) const;

  WinogradShape shape_;
  TileWindows<const float, winograd_side> inputs_;
  TileWindows<float, winograd_tile> outputs_;
  bool holds_points_;
  std::int64_t blocks_;
  std::int64_t rows_;  ///< tiles of a block
  LineVector zeros_;   ///< a voxel outside x
  LineVector taps_;
  LineVector points_;                  ///< [depth points, 36, I, O], or none
  std::vector<LoneProduct> products_;  ///< one a thread
};

}  // namespace halograd::cpu
