#pragma once

#include "halograd/kernels/cuda/launch.cuh"
#include "halograd/kernels/cuda/reduction.hpp"

namespace halograd::cuda {

/// Sums over lanes that are 16, 8 … `last` apart: with 1 the whole warp, with 8 those that are equal modulo 8.
__device__ inline double warp_sum(double value, int last = 1) {
  for (int apart = warp_size / 2; apart >= last; apart /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, apart);
  return value;
}

/// Writes the sums over a block of `values` numbers a thread to `sums`.
template <int values>
__device__ void store_block_sums(const double (&mine)[values], double* sums) {
  __shared__ double of_warps[sum_warps][values];
#pragma unroll
  for (int i = 0; i < values; ++i) {
    const double sum = warp_sum(mine[i]);
    if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size][i] = sum;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < values; i += sum_threads) {
    double sum = 0;
    for (int warp = 0; warp < sum_warps; ++warp) sum += of_warps[warp][i];
    sums[i] = sum;
  }
}

namespace kernel {

/// The second stage: one warp a result.
template <typename Pieces>
__global__ void __launch_bounds__(sum_threads) merge_pieces(const Pieces pieces, double* sums) {
  const std::int64_t result = std::int64_t{blockIdx.x} * sum_warps + threadIdx.x / warp_size;
  if (result >= pieces.results()) return;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const auto term = [&](std::int64_t i) { return pieces.term(result, i); };
  const double sum = warp_sum(strided_sum(term, 0, pieces.count(result), lane, warp_size));
  if (lane == 0) sums[result] = sum;
}

}  // namespace kernel

inline void merge_pieces(const Queue& queue, const char* what, const PieceSums& pieces, double* sums) {
  const auto blocks = static_cast<std::uint32_t>(ceiling_quotient(pieces.results(), sum_warps));
  launch(queue, what, Grid{blocks, sum_threads}, kernel::merge_pieces<PieceSums>, pieces, sums);
}

}  // namespace halograd::cuda
