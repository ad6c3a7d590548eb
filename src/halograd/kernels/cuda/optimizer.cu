#include "halograd/kernels/cuda/launch.cuh"
#include "halograd/kernels/cuda/optimizer.hpp"
#include "halograd/kernels/cuda/optimizer_element.hpp"

namespace halograd::cuda {
namespace {

/// A step's constants take powers and a root in double: one thread of a block works them out for all.
template <typename Range>
__global__ void __launch_bounds__(block_threads, resident_blocks)
    update(const __grid_constant__ Range range, const typename Range::Step* step, std::int64_t items) {
  __shared__ typename Range::Constants constants;
  if (threadIdx.x == 0) constants = Range::constants(*step);
  __syncthreads();
  const typename Range::Constants mine = constants;
  const std::int64_t stride = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t item = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; item < items; item += stride) {
    range(item, mine);
  }
}

}  // namespace

void adam_update(const Queue& queue, const AdamStep* adam, const float* g, float* w, float* m, float* v,
                 std::int64_t count) {
  const AdamRange range(g, w, m, v, count);
  launch(queue, "updating weights with Adam", walking_grid(range.range.items()), update<AdamRange>, range, adam,
         range.range.items());
}

void sgd_update(const Queue& queue, const SgdStep* sgd, const float* g, float* w, float* velocity, std::int64_t count) {
  const SgdRange range(g, w, velocity, count);
  launch(queue, "updating weights with SGD", walking_grid(range.range.items()), update<SgdRange>, range, sgd,
         range.range.items());
}

}  // namespace halograd::cuda
