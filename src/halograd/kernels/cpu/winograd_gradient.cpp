#include "halograd/kernels/cpu/winograd_gradient.hpp"

#include "halograd/core/parallel.hpp"

#include <algorithm>

namespace halograd::cpu {
namespace {

using onednn::Tag;

/// Numbers of a block's points, and its fewest tiles, so that sums aren't read and written for too few products.
constexpr std::int64_t block_elements = 1 << 20;
constexpr std::int64_t fewest_rows = 128;

std::int64_t count_blocks(const WinogradShape& shape) {
  const std::int64_t row = winograd_points * (shape.in_channels + shape.out_channels);
  const std::int64_t rows = std::max(fewest_rows, block_elements / row);
  return (shape.all_tiles() + rows - 1) / rows;
}

}  // namespace

WinogradGradient::WinogradGradient(const WinogradShape& shape)
    : shape_(shape),
      inputs_(shape.in, shape.in_channels, shape.tiles(), shape.pad_lo),
      gradients_(shape.out, shape.out_channels, shape.tiles(), Extent{0, 0, 0}),
      blocks_(count_blocks(shape)),
      rows_((shape.all_tiles() + blocks_ - 1) / blocks_),
      zeros_(line_vector(std::max(shape.in_channels, shape.out_channels))) {
  const auto inputs = onednn::f32({shape.in_channels, rows_}, Tag::ba);
  const auto gradients = onednn::f32({rows_, shape.out_channels}, Tag::ab);
  const auto sums = onednn::f32({shape.in_channels, shape.out_channels}, Tag::ab);
  const int threads = std::min(thread_count(), winograd_points);
  for (int i = 0; i < threads; ++i) {
    products_.push_back({{inputs, gradients, sums, false}, {inputs, gradients, sums, true}});
  }
}

const float* WinogradGradient::run(const float* x, const float* dy, float* scratch) {
  float* gradients = scratch + winograd_points * rows_ * shape_.in_channels;
  float* sums = gradients + winograd_points * rows_ * shape_.out_channels;
  float* taps = sums + winograd_points * shape_.weights();
  // Depth points one after the other: to hold the sums of all of them isn't faster.
  for (int point = 0; point < winograd_depth.points; ++point) {
    for (std::int64_t block = 0; block < blocks_; ++block) {
      expand_block(block, point, x, dy, scratch, gradients);
      add_products(scratch, gradients, sums, block > 0);
    }
    collapse(point, sums, taps);
  }
  return taps;
}

std::int64_t WinogradGradient::scratch_elements() const {
  return winograd_points * rows_ * (shape_.in_channels + shape_.out_channels) +
         (winograd_points + 27) * shape_.weights();
}

std::int64_t WinogradGradient::held_bytes() const {
  auto bytes = static_cast<std::int64_t>(zeros_.size() * sizeof(float));
  for (const Products& products : products_) bytes += products.assign.held_bytes() + products.add.held_bytes();
  return bytes;
}

void WinogradGradient::expand_block(std::int64_t block, int point, const float* x, const float* dy, float* inputs,
                                    float* gradients) const {
  const WinogradAxis& depth = winograd_depth;
  const WinogradKernels& kernels = winograd_kernels();
  const std::int64_t in = shape_.in_channels;
  const std::int64_t out = shape_.out_channels;
  float outputs[winograd_depth.outputs];
  for (int d = 0; d < depth.outputs; ++d) outputs[d] = depth.output[d][point];
  parallel_for(rows_, [&](std::int64_t row) {
    const std::int64_t tile = block * rows_ + row;
    if (tile >= shape_.all_tiles()) {
      for (int p = 0; p < winograd_points; ++p) {
        std::fill_n(inputs + (p * rows_ + row) * in, in, 0.0F);
        std::fill_n(gradients + (p * rows_ + row) * out, out, 0.0F);
      }
      return;
    }
    WinogradPlanes<const float> planes;
    inputs_.select(x, zeros_.data(), tile, depth.input[point], depth.points, planes);
    kernels.expand_input(planes, in, inputs + row * in, rows_ * in);
    gradients_.select(dy, zeros_.data(), tile, outputs, depth.outputs, planes);
    kernels.expand_gradient(planes, out, gradients + row * out, rows_ * out);
  });
}

void WinogradGradient::add_products(const float* inputs, const float* gradients, float* sums, bool accumulate) {
  const auto threads = static_cast<std::int64_t>(products_.size());
  parallel_for(threads, [&](std::int64_t thread) {
    Products& products = products_[static_cast<std::size_t>(thread)];
    LoneProduct& product = accumulate ? products.add : products.assign;
    for (std::int64_t p = winograd_points * thread / threads; p < winograd_points * (thread + 1) / threads; ++p) {
      product.run(inputs + p * rows_ * shape_.in_channels, gradients + p * rows_ * shape_.out_channels,
                  sums + p * shape_.weights());
    }
  });
}

void WinogradGradient::collapse(int point, const float* sums, float* taps) const {
  constexpr std::int64_t chunk = 16;
  parallel_ranges(shape_.weights() / chunk, [&](std::int64_t begin, std::int64_t end, int) {
    winograd_kernels().collapse_weights(sums, winograd_depth.weights[point], shape_.weights(), begin * chunk,
                                        end * chunk, taps, point > 0);
  });
}

}  // namespace halograd::cpu
