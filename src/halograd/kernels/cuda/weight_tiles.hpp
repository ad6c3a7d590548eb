#pragma once

#include <cstdint>

// Where weights lie as PyTorch has them, [O,I,K] with K places of the kernel, and packed as cuDNN reads them fastest,
// [O,K,I]; and how a block of threads turns one into the other, so that neighbours in a warp read and write neighbours
// in memory. On the host and on the device.
namespace halograd::cuda {

struct WeightLayout {
  std::int64_t out_channels = 0;
  std::int64_t in_channels = 0;
  std::int64_t places = 0;

  [[nodiscard]] constexpr std::int64_t elements() const { return out_channels * in_channels * places; }
  [[nodiscard]] constexpr std::int64_t plain(std::int64_t o, std::int64_t i, std::int64_t place) const {
    return (o * in_channels + i) * places + place;
  }
  [[nodiscard]] constexpr std::int64_t packed(std::int64_t o, std::int64_t i, std::int64_t place) const {
    return (o * places + place) * in_channels + i;
  }
};

/// A block turns a tile of this many input channels and as many places of one output channel.
constexpr int tile_side = 32;
/// Its threads: a row of the tile and some of its rows at once.
constexpr int tile_rows = 8;

struct TileGrid {
  std::int64_t in_channels = 0;
  std::int64_t places = 0;
  std::int64_t out_channels = 0;
};

constexpr TileGrid tiles_of(const WeightLayout& layout) {
  return {(layout.in_channels + tile_side - 1) / tile_side, (layout.places + tile_side - 1) / tile_side,
          layout.out_channels};
}

/// One weight that a thread moves: its place in the tile and in memory, or none.
struct TileCell {
  int channel = 0;
  int place = 0;
  std::int64_t at = 0;
  bool inside = false;
};

/// Cell (row, lane) of a tile in plain order: neighbouring lanes are neighbouring places.
constexpr TileCell plain_cell(const WeightLayout& layout, const TileGrid& tile, int row, int lane) {
  const std::int64_t i = tile.in_channels * tile_side + row;
  const std::int64_t place = tile.places * tile_side + lane;
  return {row, lane, layout.plain(tile.out_channels, i, place), i < layout.in_channels && place < layout.places};
}

/// Cell (row, lane) in packed order: neighbouring lanes are neighbouring channels.
constexpr TileCell packed_cell(const WeightLayout& layout, const TileGrid& tile, int row, int lane) {
  const std::int64_t i = tile.in_channels * tile_side + lane;
  const std::int64_t place = tile.places * tile_side + row;
  return {lane, row, layout.packed(tile.out_channels, i, place), i < layout.in_channels && place < layout.places};
}

}  // namespace halograd::cuda
