#pragma once

#include "halograd/device/cuda/runtime.hpp"
#include "halograd/kernels/cuda/grid.hpp"

#include <cstdint>

namespace halograd::cuda {

/// Lists a kernel in the queue; `what` is being done, for errors. No blocks: nothing.
template <typename... Parameters, typename... Arguments>
void launch(const Queue& queue, const char* what, const Grid& grid, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  if (grid.blocks == 0) return;
  kernel<<<grid.blocks, grid.threads, 0, stream_of(queue)>>>(arguments...);
  check(cudaGetLastError(), what);
}

namespace kernel {

template <typename Body>
__global__ void __launch_bounds__(block_threads, resident_blocks)
    for_each_item(const __grid_constant__ Body body, std::uint32_t items) {
  const std::uint32_t item = blockIdx.x * block_threads + threadIdx.x;
  if (item < items) body(item);
}

template <typename Body>
__global__ void __launch_bounds__(block_threads, resident_blocks)
    for_each_walking(const __grid_constant__ Body body, std::int64_t items) {
  const std::int64_t stride = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t item = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; item < items; item += stride) {
    body(item);
  }
}

/// All of a thread's loads come before its stores.
template <int batch, typename Body>
__global__ void __launch_bounds__(block_threads, resident_blocks)
    move_items(const __grid_constant__ Body body, std::uint32_t items) {
  decltype(body.load(0)) loaded[batch];
#pragma unroll
  for (int turn = 0; turn < batch; ++turn) {
    const std::uint32_t item = batched_item(blockIdx.x, threadIdx.x, batch, turn);
    if (item < items) loaded[turn] = body.load(item);
  }
#pragma unroll
  for (int turn = 0; turn < batch; ++turn) {
    const std::uint32_t item = batched_item(blockIdx.x, threadIdx.x, batch, turn);
    if (item < items) body.store(loaded[turn]);
  }
}

}  // namespace kernel

/// body(item) for items below `items`, one a thread.
template <typename Body>
void for_each_item(const Queue& queue, const char* what, const Body& body, std::int64_t items) {
  launch(queue, what, grid_for(items), kernel::for_each_item<Body>, body, static_cast<std::uint32_t>(items));
}

/// The same of any number of items.
template <typename Body>
void for_each_walking(const Queue& queue, const char* what, const Body& body, std::int64_t items) {
  launch(queue, what, walking_grid(items), kernel::for_each_walking<Body>, body, items);
}

/// body.store(body.load(item)) for items below `items`.
template <typename Body>
void move_items(const Queue& queue, const char* what, const Body& body, std::int64_t items) {
  const auto count = static_cast<std::uint32_t>(items);
  if (worth_batching(items)) {
    launch(queue, what, grid_for(items, copy_batch), kernel::move_items<copy_batch, Body>, body, count);
  } else {
    launch(queue, what, grid_for(items), kernel::move_items<1, Body>, body, count);
  }
}

}  // namespace halograd::cuda
