#include "halograd/kernels/cpu/winograd_pass.hpp"

#include "halograd/core/parallel.hpp"

#include <algorithm>

namespace halograd::cpu {
namespace {

using onednn::Tag;

/// Up to here the transformed weights of all depth points are held, and each block of voxels is read and written while
/// it is in the cache. More of them would drop out of the last cache from block to block, so that it is as fast, and
/// takes less memory, to transform those of one depth point and walk over all tiles, once a depth point.
constexpr std::int64_t most_held_elements = 2 << 20;
/// Tiles of a block: their points lie in the second-level cache, or serve to use weights more often that do not.
constexpr std::int64_t block_rows = 32;
constexpr std::int64_t walk_block_rows = 64;

bool may_hold_points(const WinogradShape& shape) {
  return winograd_depth.points * winograd_points * shape.weights() <= most_held_elements;
}

std::int64_t count_blocks(const WinogradShape& shape) {
  const std::int64_t tiles = shape.all_tiles();
  const std::int64_t threads = thread_count();
  const std::int64_t rows = may_hold_points(shape) ? block_rows : walk_block_rows;
  const std::int64_t blocks = std::max((tiles + rows - 1) / rows, std::min(tiles, threads));
  return blocks < 4 * threads ? std::min(tiles, (blocks + threads - 1) / threads * threads) : blocks;
}

/// Depth points begin with the second, which has a part in every output and so may assign them.
int depth_point(int order) {
  return (order + 1) % winograd_depth.points;
}

}  // namespace

WinogradPass::WinogradPass(const WinogradShape& shape)
    : shape_(shape),
      inputs_(shape.in, shape.in_channels, shape.tiles(), shape.pad_lo),
      outputs_(shape.out, shape.out_channels, shape.tiles(), Extent{0, 0, 0}),
      holds_points_(may_hold_points(shape)),
      blocks_(count_blocks(shape)),
      rows_((shape.all_tiles() + blocks_ - 1) / blocks_),
      zeros_(line_vector(shape.in_channels)),
      taps_(line_vector(27 * shape.weights())),
      points_(line_vector(holds_points_ ? winograd_depth.points * winograd_points * shape.weights() : 0)) {
  const auto block = onednn::f32({winograd_points, rows_, shape.in_channels}, Tag::abc);
  const auto weights = onednn::f32({winograd_points, shape.in_channels, shape.out_channels}, Tag::abc);
  const auto results = onednn::f32({winograd_points, rows_, shape.out_channels}, Tag::abc);
  const std::int64_t threads = std::min<std::int64_t>(thread_count(), blocks_);
  for (std::int64_t i = 0; i < threads; ++i) products_.emplace_back(block, weights, results, false);
}

void WinogradPass::prepare() {
  if (!holds_points_) return;
  for (int order = 0; order < winograd_depth.points; ++order) {
    transform_weights(order, points_.data() + order * winograd_points * shape_.weights());
  }
}

void WinogradPass::run(const float* x, float* y, float* scratch) {
  if (holds_points_) {
    walk(0, winograd_depth.points, points_.data(), x, y, scratch);
    return;
  }
  float* points = scratch + blocks_scratch();
  for (int order = 0; order < winograd_depth.points; ++order) {
    transform_weights(order, points);
    walk(order, order + 1, points, x, y, scratch);
  }
}

std::int64_t WinogradPass::scratch_elements() const {
  return blocks_scratch() + (holds_points_ ? 0 : winograd_points * shape_.weights());
}

std::int64_t WinogradPass::blocks_scratch() const {
  return static_cast<std::int64_t>(products_.size()) * block_scratch();
}

std::int64_t WinogradPass::block_scratch() const {
  return winograd_points * rows_ * (shape_.in_channels + shape_.out_channels) + shape_.out_channels;
}

std::int64_t WinogradPass::held_bytes() const {
  auto bytes = static_cast<std::int64_t>((zeros_.size() + taps_.size() + points_.size()) * sizeof(float));
  for (const LoneProduct& product : products_) bytes += product.held_bytes();
  return bytes;
}

void WinogradPass::transform_weights(int order, float* points) {
  constexpr std::int64_t chunk = 16;
  const float* depth = winograd_depth.weights[depth_point(order)];
  parallel_ranges(shape_.weights() / chunk, [&](std::int64_t begin, std::int64_t end, int) {
    winograd_kernels().expand_weights(taps_.data(), depth, shape_.weights(), begin * chunk, end * chunk, points);
  });
}

void WinogradPass::walk(int begin, int end, const float* points, const float* x, float* y, float* scratch) {
  const auto threads = static_cast<std::int64_t>(products_.size());
  parallel_for(threads, [&](std::int64_t thread) {
    LoneProduct& product = products_[static_cast<std::size_t>(thread)];
    for (std::int64_t block = blocks_ * thread / threads; block < blocks_ * (thread + 1) / threads; ++block) {
      for (int order = begin; order < end; ++order) {
        const float* weights = points + (order - begin) * winograd_points * shape_.weights();
        run_block(block, order, weights, x, y, product, scratch + thread * block_scratch());
      }
    }
  });
}

void WinogradPass::run_block(std::int64_t block, int order, const float* weights, const float* x, float* y,
                             LoneProduct& product, float* scratch) const {
  const WinogradAxis& depth = winograd_depth;
  const WinogradKernels& kernels = winograd_kernels();
  const std::int64_t in = shape_.in_channels;
  const std::int64_t out = shape_.out_channels;
  const std::int64_t first = block * rows_;
  const std::int64_t count = std::min(rows_, shape_.all_tiles() - first);
  float* points = scratch;
  float* results = points + winograd_points * rows_ * in;
  float* sink = results + winograd_points * rows_ * out;

  WinogradPlanes<const float> from;
  for (std::int64_t i = 0; i < count; ++i) {
    inputs_.select(x, zeros_.data(), first + i, depth.input[depth_point(order)], depth.points, from);
    kernels.expand_input(from, in, points + i * in, rows_ * in);
  }
  // Rows behind the last tile come out as whatever they are.
  product.run(points, weights, results);
  float coefficients[winograd_tile];
  for (int d = 0; d < depth.outputs; ++d) coefficients[d] = depth.output[d][depth_point(order)];
  WinogradPlanes<float> to;
  for (std::int64_t i = 0; i < count; ++i) {
    outputs_.select(y, sink, first + i, coefficients, depth.outputs, to);
    kernels.collapse_output(results + i * out, rows_ * out, out, to, order > 0);
  }
}

}  // namespace halograd::cpu
