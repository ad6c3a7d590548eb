#pragma once

#include "halograd/kernels/cuda/weight_tiles.hpp"

#include <array>

namespace halograd::test {

// The kernels of pack_weights.cu, tile after tile on the host.

/// One tile as a block of threads turns it: all cells in, then all cells out. `write(at, value)` stores a number.
template <typename In, typename Out, typename T, typename Write>
void turn_tile(const cuda::WeightLayout& layout, const cuda::TileGrid& tile, const In& in, const Out& out,
               const T* from, const Write& write) {
  std::array<std::array<float, cuda::tile_side + 1>, cuda::tile_side> shared;
  for (auto& row : shared) row.fill(1e30F);
  for (int pass = 0; pass < 2; ++pass) {
    for (int row = 0; row < cuda::tile_side; ++row) {
      for (int lane = 0; lane < cuda::tile_side; ++lane) {
        const cuda::TileCell cell = pass == 0 ? in(layout, tile, row, lane) : out(layout, tile, row, lane);
        if (!cell.inside) continue;
        float& value = shared[static_cast<std::size_t>(cell.channel)][static_cast<std::size_t>(cell.place)];
        if (pass == 0) {
          value = static_cast<float>(from[cell.at]);
        } else {
          write(cell.at, value);
        }
      }
    }
  }
}

template <typename In, typename Out, typename T, typename Write>
void turn_tiles(const cuda::WeightLayout& layout, const In& in, const Out& out, const T* from, const Write& write) {
  const cuda::TileGrid tiles = cuda::tiles_of(layout);
  for (cuda::TileGrid at; at.out_channels < tiles.out_channels; ++at.out_channels) {
    for (at.places = 0; at.places < tiles.places; ++at.places) {
      for (at.in_channels = 0; at.in_channels < tiles.in_channels; ++at.in_channels) {
        turn_tile(layout, at, in, out, from, write);
      }
    }
  }
}

/// pack.
template <typename T>
void run_pack(const cuda::WeightLayout& layout, const float* plain, T* packed) {
  turn_tiles(layout, cuda::plain_cell, cuda::packed_cell, plain,
             [&](std::int64_t at, float value) { packed[at] = static_cast<T>(value); });
}

/// unpack.
template <bool add, typename T>
void run_unpack(const cuda::WeightLayout& layout, const T* packed, float* plain) {
  turn_tiles(layout, cuda::packed_cell, cuda::plain_cell, packed,
             [&](std::int64_t at, float value) { plain[at] = add ? plain[at] + value : value; });
}

}  // namespace halograd::test
