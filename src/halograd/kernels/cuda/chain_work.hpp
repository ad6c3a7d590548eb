#pragma once

#include "halograd/kernels/cuda/chain_index.hpp"
#include "halograd/kernels/cuda/grid.hpp"

namespace halograd::cuda::chain {

constexpr int most_columns = 32;

/// A thread of a kernel, where it keeps nothing from one stage to the next.
struct PlainThread {
  std::uint32_t block = 0;
  std::uint32_t thread = 0;
};
/// What a block's threads share, where that is nothing.
struct NothingShared {};

/// A kernel of one stage, whose threads need nothing of each other: each runs Kernel::run_thread(args, me).
template <typename Kernel>
struct OneStage {
  using Shared = NothingShared;
  using Thread = PlainThread;
  static constexpr int threads = block_threads;

  template <typename Team, typename Args>
  static constexpr void run(Team& team, const Args& args, Shared&) {
    team.last([&](Thread& me) { Kernel::run_thread(args, me); });
  }
};

constexpr std::int32_t divided_up(std::int32_t value, std::int32_t by) {
  return (value + by - 1) / by;
}

/// How a block's threads lie on a tensor: columns are the vectors of a voxel's channels and run fastest, so that a warp
/// reads memory in one piece; rows are voxels. More channels than a block has columns for are cut into slices.
struct BlockShape {
  std::int32_t lanes = 1;  ///< channels of a vector
  std::int32_t vectors = 0;
  std::int32_t slices = 0;
  std::int32_t columns = 0;
  std::int32_t rows = 0;

  [[nodiscard]] constexpr std::int32_t slice_channels() const { return columns * lanes; }
  /// The channels of all slices together: as many as there are, or a few more.
  [[nodiscard]] constexpr std::int32_t padded_channels() const { return slices * slice_channels(); }
};

/// `lanes` divides `channels`.
constexpr BlockShape block_shape(std::int32_t channels, std::int32_t lanes) {
  BlockShape shape;
  shape.lanes = lanes;
  shape.vectors = channels / lanes;
  shape.slices = divided_up(shape.vectors, most_columns);
  shape.columns = divided_up(shape.vectors, shape.slices);
  shape.rows = block_threads / shape.columns;
  return shape;
}

/// Where a thread stands in its block.
struct Stand {
  bool works = false;  ///< else there is nothing for it here
  std::int32_t column = 0;
  std::int32_t row = 0;
  std::int32_t channel = 0;  ///< the first of its vector
};

constexpr Stand stand_of(const BlockShape& shape, std::int32_t slice, std::uint32_t thread) {
  Stand stand;
  stand.column = static_cast<std::int32_t>(thread) % shape.columns;
  stand.row = static_cast<std::int32_t>(thread) / shape.columns;
  const std::int32_t vector = slice * shape.columns + stand.column;
  stand.channel = vector * shape.lanes;
  stand.works = stand.row < shape.rows && vector < shape.vectors;
  return stand;
}

/// The cells of a box, set of samples by set, dealt out to blocks: a block's rows take neighbouring cells, then go on
/// to those behind what all blocks of the set take at a time. A cell is `width` neighbouring voxels of a row, counted
/// from voxel 0 of the volume, so that the first and last of the box may lie partly outside.
struct Work {
  BlockShape shape;
  Region box;
  std::int32_t width = 1;
  std::int32_t sets = 0;
  std::int32_t samples = 0;  ///< of a set
  std::uint32_t items = 0;   ///< cells of a set
  std::int32_t first_cell = 0;
  Divisor cells;  ///< of a row
  Divisor height;
  Divisor depth;
  std::int32_t set_blocks = 0;  ///< that share a set and a slice

  [[nodiscard]] constexpr std::int64_t blocks() const { return std::int64_t{sets} * set_blocks * shape.slices; }
};

/// `resident`: the blocks that the GPU runs at once; no more are made (save for one a set and slice), so that each has
/// long runs of cells. `least`: cells that a thread should have at least.
constexpr Work deal(const Geometry& g, const Region& box, std::int32_t width, std::int32_t lanes, std::int32_t resident,
                    std::int32_t least) {
  Work work;
  work.shape = block_shape(g.channels, lanes);
  work.box = box;
  work.width = width;
  work.sets = set_count(g);
  work.samples = set_samples(g);
  if (box.empty() || work.samples == 0) return work;
  work.first_cell = box.lo.w / width;
  const std::int32_t cells = divided_up(box.hi.w, width) - work.first_cell;
  work.cells = Divisor(static_cast<std::uint32_t>(cells));
  work.height = Divisor(static_cast<std::uint32_t>(box.size(1)));
  work.depth = Divisor(static_cast<std::uint32_t>(box.size(0)));
  work.items = static_cast<std::uint32_t>(work.samples * box.size(0) * box.size(1) * cells);
  const std::int32_t wanted = divided_up(static_cast<std::int32_t>(work.items), work.shape.rows * least);
  const std::int32_t share = resident / (work.sets * work.shape.slices);
  work.set_blocks = wanted < share ? wanted : (share > 1 ? share : 1);
  return work;
}

/// What a block does in a Work.
struct Share {
  std::int32_t slice = 0;
  std::int32_t set = 0;
  std::int32_t place = 0;   ///< among the set's blocks
  std::uint32_t first = 0;  ///< cell of row 0
  std::uint32_t step = 0;
};

constexpr Share share_of(const Work& work, std::uint32_t block) {
  const auto slices = static_cast<std::uint32_t>(work.shape.slices);
  const auto set_blocks = static_cast<std::uint32_t>(work.set_blocks);
  Share share;
  share.slice = static_cast<std::int32_t>(block % slices);
  share.set = static_cast<std::int32_t>(block / slices / set_blocks);
  share.place = static_cast<std::int32_t>(block / slices % set_blocks);
  share.first = static_cast<std::uint32_t>(share.place * work.shape.rows);
  share.step = static_cast<std::uint32_t>(work.set_blocks * work.shape.rows);
  return share;
}

/// A cell's sample and first voxel.
struct Cell {
  std::int32_t n = 0;
  Point at;
};

constexpr Cell cell_of(const Work& work, std::int32_t set, std::uint32_t item) {
  const std::uint32_t row = work.cells.quotient(item);
  const std::uint32_t plane = work.height.quotient(row);
  const std::uint32_t sample = work.depth.quotient(plane);
  Cell cell;
  cell.n = set * work.samples + static_cast<std::int32_t>(sample);
  cell.at.d = work.box.lo.d + static_cast<std::int32_t>(plane - sample * work.depth.value());
  cell.at.h = work.box.lo.h + static_cast<std::int32_t>(row - plane * work.height.value());
  cell.at.w = (work.first_cell + static_cast<std::int32_t>(item - row * work.cells.value())) * work.width;
  return cell;
}

/// Outputs of pooling, dealt out as blocks of neighbours, so that what windows share comes from the first-level cache:
/// a block's rows are a tile of 2^log voxels a dimension, each of which goes on for `run` outputs along d.
struct Tiling {
  BlockShape shape;
  Region part;
  Point log;
  Point tiles;
  std::int32_t run = 1;
  std::int32_t samples = 0;

  [[nodiscard]] constexpr std::int64_t blocks() const {
    return std::int64_t{samples} * tiles.d * tiles.h * tiles.w * shape.slices;
  }
};

constexpr Point tiles_of(const Region& part, const Point& log, std::int32_t run) {
  return {divided_up(part.size(0), run << log.d), divided_up(part.size(1), 1 << log.h),
          divided_up(part.size(2), 1 << log.w)};
}

/// The run that keeps all processors busy longest: blocks come in waves of `resident`, the last of which may be nearly
/// empty, and each run of j outputs looks at 2j + 1 planes, after some preparation.
constexpr std::int32_t best_run(const Tiling& tiling, std::int64_t resident) {
  constexpr std::int32_t longest = 8;
  const std::int32_t room = divided_up(tiling.part.size(0), 1 << tiling.log.d);
  std::int32_t best = 1;
  std::int64_t best_cost = 0;
  for (std::int32_t run = 1; run <= longest && run <= room; ++run) {
    Tiling tried = tiling;
    tried.tiles = tiles_of(tiling.part, tiling.log, run);
    const std::int64_t cost = (tried.blocks() + resident - 1) / resident * (2 * run + 2);
    if (run > 1 && cost >= best_cost) continue;
    best = run;
    best_cost = cost;
  }
  return best;
}

/// `resident`: the blocks that the GPU runs at once. The part is not empty.
constexpr Tiling tile(const Geometry& g, const Region& part, std::int32_t lanes, std::int64_t resident) {
  Tiling tiling;
  tiling.shape = block_shape(g.channels, lanes);
  tiling.part = part;
  tiling.samples = g.samples;
  std::int32_t rows = tiling.shape.rows;
  for (bool grew = true; grew;) {
    grew = false;
    for (const int i : {2, 1}) {
      if (rows < 2 || (1 << tiling.log[i]) >= part.size(i)) continue;
      ++tiling.log[i];
      rows /= 2;
      grew = true;
    }
  }
  while (rows >= 2 && (1 << tiling.log.d) < part.size(0)) {
    ++tiling.log.d;
    rows /= 2;
  }
  tiling.run = best_run(tiling, resident);
  tiling.tiles = tiles_of(part, tiling.log, tiling.run);
  return tiling;
}

/// A thread's outputs: `first` and those behind it along d, up to `end`.
struct Run {
  std::int32_t n = 0;
  Point first;
  std::int32_t end = 0;  ///< no more than first.d: none
  Stand stand;
};

constexpr Run run_of(const Tiling& tiling, std::uint32_t block, std::uint32_t thread) {
  const auto slices = static_cast<std::uint32_t>(tiling.shape.slices);
  std::uint32_t rest = block / slices;
  Run run;
  run.stand = stand_of(tiling.shape, static_cast<std::int32_t>(block % slices), thread);
  Point tile_at;
  for (const int i : {2, 1, 0}) {
    const auto tiles = static_cast<std::uint32_t>(tiling.tiles[i]);
    tile_at[i] = static_cast<std::int32_t>(rest % tiles);
    rest /= tiles;
  }
  run.n = static_cast<std::int32_t>(rest);
  const Point& log = tiling.log;
  const std::int32_t row = run.stand.row;
  const std::int32_t w = row & ((1 << log.w) - 1);
  const std::int32_t h = (row >> log.w) & ((1 << log.h) - 1);
  const std::int32_t d = row >> (log.w + log.h);
  run.first.w = tiling.part.lo.w + (tile_at.w << log.w) + w;
  run.first.h = tiling.part.lo.h + (tile_at.h << log.h) + h;
  run.first.d = tiling.part.lo.d + ((tile_at.d << log.d) + d) * tiling.run;
  const bool inside =
      run.stand.works && d < (1 << log.d) && run.first.w < tiling.part.hi.w && run.first.h < tiling.part.hi.h;
  const std::int32_t end = run.first.d + tiling.run;
  run.end = !inside ? run.first.d : (end < tiling.part.hi.d ? end : tiling.part.hi.d);
  return run;
}

}  // namespace halograd::cuda::chain
