#pragma once

#include "halograd/kernels/cuda/segmentation_chunks.hpp"
#include "kernels/software_grid.hpp"

#include <algorithm>

namespace halograd::test {

// The kernels of segmentation_loss.cu for up to eight classes, thread after thread.

/// Calls `body(sample, piece)` for the blocks of a launch.
template <typename Body>
void for_each_block(const SegmentationLossDesc& desc, std::int64_t pieces, const Body& body) {
  for (std::int64_t sample = 0; sample < desc.samples; ++sample) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) body(sample, piece);
  }
}

/// chunk_sums. partial: [samples, pieces, values].
template <typename T, int classes>
void run_chunk_sums(const cuda::SegmentationChunkSums<T, classes>& sums, const SegmentationLossDesc& desc,
                    std::int64_t pieces, double* partial) {
  constexpr auto values = static_cast<std::size_t>(cuda::SegmentationChunkSums<T, classes>::values);
  const std::int64_t items = sums.chunks.items();
  for_each_block(desc, pieces, [&](std::int64_t sample, std::int64_t piece) {
    std::vector<std::array<double, values>> of_threads(cuda::sum_threads);
    for (int thread = 0; thread < cuda::sum_threads; ++thread) {
      typename cuda::SegmentationChunkSums<T, classes>::State state;
      for (std::int64_t item = cuda::piece_begin(items, piece, pieces) + thread;
           item < cuda::piece_begin(items, piece + 1, pieces); item += cuda::sum_threads) {
        sums.add(state, sample, item);
      }
      double mine[values];
      sums.finish(state, mine);
      std::copy_n(mine, values, of_threads[static_cast<std::size_t>(thread)].begin());
    }
    for (std::size_t i = 0; i < values; ++i) {
      *partial++ = block_sum([&](int thread) { return of_threads[static_cast<std::size_t>(thread)][i]; });
    }
  });
}

/// chunk_gradient.
template <typename Gradient>
void run_chunk_gradient(const Gradient& gradient, const SegmentationLossDesc& desc, std::int64_t pieces) {
  const std::int64_t items = gradient.chunks.items();
  for_each_block(desc, pieces, [&](std::int64_t sample, std::int64_t piece) {
    const auto factors = gradient.factors(sample);
    for (std::int64_t item = cuda::piece_begin(items, piece, pieces);
         item < cuda::piece_begin(items, piece + 1, pieces); ++item) {
      gradient.write(factors, sample, item);
    }
  });
}

}  // namespace halograd::test
