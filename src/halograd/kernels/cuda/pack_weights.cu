#include "halograd/core/bf16.hpp"
#include "halograd/device/cuda/runtime.hpp"
#include "halograd/kernels/cuda/pack_weights.hpp"

namespace halograd::cuda {
namespace {

// A column more than a row has cells: lanes that walk down a column then meet different banks.
using Tile = float[tile_side][tile_side + 1];

__device__ TileGrid this_tile() {
  return {blockIdx.x, blockIdx.y, blockIdx.z};
}

template <typename T>
__global__ void __launch_bounds__(tile_side* tile_rows)
    pack(const WeightLayout layout, const float* __restrict__ plain, T* __restrict__ packed) {
  __shared__ Tile tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int row = static_cast<int>(threadIdx.y); row < tile_side; row += tile_rows) {
    const TileCell cell = plain_cell(layout, this_tile(), row, lane);
    if (cell.inside) tile[cell.channel][cell.place] = plain[cell.at];
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.y); row < tile_side; row += tile_rows) {
    const TileCell cell = packed_cell(layout, this_tile(), row, lane);
    if (cell.inside) packed[cell.at] = static_cast<T>(tile[cell.channel][cell.place]);
  }
}

template <typename T, bool Add>
__global__ void __launch_bounds__(tile_side* tile_rows)
    unpack(const WeightLayout layout, const T* __restrict__ packed, float* __restrict__ plain) {
  __shared__ Tile tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int row = static_cast<int>(threadIdx.y); row < tile_side; row += tile_rows) {
    const TileCell cell = packed_cell(layout, this_tile(), row, lane);
    if (cell.inside) tile[cell.channel][cell.place] = static_cast<float>(packed[cell.at]);
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.y); row < tile_side; row += tile_rows) {
    const TileCell cell = plain_cell(layout, this_tile(), row, lane);
    if (!cell.inside) continue;
    const float value = tile[cell.channel][cell.place];
    plain[cell.at] = Add ? plain[cell.at] + value : value;
  }
}

dim3 grid_of(const WeightLayout& layout) {
  const TileGrid tiles = tiles_of(layout);
  return {static_cast<unsigned>(tiles.in_channels), static_cast<unsigned>(tiles.places),
          static_cast<unsigned>(tiles.out_channels)};
}

constexpr unsigned threads_x = tile_side;
constexpr unsigned threads_y = tile_rows;

}  // namespace

void pack_weights(const Queue& queue, const WeightLayout& layout, DType type, const float* plain, void* packed) {
  with_activation_type(type, [&](auto element) {
    using T = decltype(element);
    pack<T>
        <<<grid_of(layout), dim3(threads_x, threads_y), 0, stream_of(queue)>>>(layout, plain, static_cast<T*>(packed));
  });
  check(cudaGetLastError(), "packing a convolution's weights");
}

void unpack_weights(const Queue& queue, const WeightLayout& layout, DType type, const void* packed, float* plain,
                    bool add) {
  with_activation_type(type, [&](auto element) {
    using T = decltype(element);
    const auto kernel = add ? unpack<T, true> : unpack<T, false>;
    kernel<<<grid_of(layout), dim3(threads_x, threads_y), 0, stream_of(queue)>>>(layout, static_cast<const T*>(packed),
                                                                                 plain);
  });
  check(cudaGetLastError(), "unpacking a convolution's weight gradient");
}

}  // namespace halograd::cuda
