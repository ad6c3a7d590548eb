#include "halograd/kernels/cuda/weight_tiles.hpp"

#include "kernels/support.hpp"

#include <array>

namespace halograd::test {
namespace {

using cuda::TileCell;
using cuda::TileGrid;
using cuda::WeightLayout;
using Tile = std::array<std::array<float, cuda::tile_side + 1>, cuda::tile_side>;

WeightLayout random_layout(Dice& dice) {
  return {dice.between(1, 5), dice.one_of<std::int64_t>({1, 3, 4, 16, 31, 32, 33, 70}),
          dice.one_of<std::int64_t>({1, 8, 27, 32, 125})};
}

/// Moves one tile as a block of threads does: all cells in, then all cells out.
template <typename In, typename Out>
void move_tile(const WeightLayout& layout, const TileGrid& tile, const In& in, const Out& out,
               const std::vector<float>& from, std::vector<float>& to) {
  Tile shared;
  for (auto& row : shared) row.fill(1e30F);
  for (int pass = 0; pass < 2; ++pass) {
    for (int row = 0; row < cuda::tile_side; ++row) {
      for (int lane = 0; lane < cuda::tile_side; ++lane) {
        const TileCell cell = pass == 0 ? in(layout, tile, row, lane) : out(layout, tile, row, lane);
        if (!cell.inside) continue;
        float& value = shared[static_cast<std::size_t>(cell.channel)][static_cast<std::size_t>(cell.place)];
        if (pass == 0) {
          value = from[static_cast<std::size_t>(cell.at)];
        } else {
          to[static_cast<std::size_t>(cell.at)] = value;
        }
      }
    }
  }
}

template <typename In, typename Out>
std::vector<float> moved(const WeightLayout& layout, const In& in, const Out& out, const std::vector<float>& from) {
  std::vector<float> to(from.size(), -1e30F);
  const TileGrid tiles = cuda::tiles_of(layout);
  for (TileGrid at; at.out_channels < tiles.out_channels; ++at.out_channels) {
    for (at.places = 0; at.places < tiles.places; ++at.places) {
      for (at.in_channels = 0; at.in_channels < tiles.in_channels; ++at.in_channels) {
        move_tile(layout, at, in, out, from, to);
      }
    }
  }
  return to;
}

TEST(CudaWeightTiles, PackingTurnsEveryWeightAndUnpackingTurnsItBack) {
  Dice dice(3);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const WeightLayout layout = random_layout(dice);
    const auto plain = random_values(layout.elements(), i);
    std::vector<float> expected(plain.size());
    std::size_t next = 0;
    for (std::int64_t o = 0; o < layout.out_channels; ++o) {
      for (std::int64_t k = 0; k < layout.places; ++k) {
        for (std::int64_t c = 0; c < layout.in_channels; ++c) {
          expected[next++] = plain[static_cast<std::size_t>((o * layout.in_channels + c) * layout.places + k)];
        }
      }
    }
    const auto packed = moved(layout, cuda::plain_cell, cuda::packed_cell, plain);
    EXPECT_EQ(packed, expected);
    EXPECT_EQ(moved(layout, cuda::packed_cell, cuda::plain_cell, packed), plain);
  }
}

TEST(CudaWeightTiles, NeighbouringLanesAreNeighboursInMemory) {
  const WeightLayout layout{2, 64, 27};
  for (int lane = 1; lane < 27; ++lane) {
    EXPECT_EQ(cuda::plain_cell(layout, {1, 0, 1}, 5, lane).at, cuda::plain_cell(layout, {1, 0, 1}, 5, lane - 1).at + 1);
  }
  for (int lane = 1; lane < 32; ++lane) {
    EXPECT_EQ(cuda::packed_cell(layout, {1, 0, 1}, 5, lane).at,
              cuda::packed_cell(layout, {1, 0, 1}, 5, lane - 1).at + 1);
  }
}

}  // namespace
}  // namespace halograd::test
