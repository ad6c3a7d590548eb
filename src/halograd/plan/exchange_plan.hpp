#pragma once

#include "halograd/core/types.hpp"
#include "halograd/tensor/layout.hpp"
#include "halograd/tensor/partition.hpp"
#include "halograd/tensor/process_grid.hpp"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace halograd {

using BufferId = int;

/// A tensor's voxels in a buffer: all its channels, or (pitch wider than the tensor's channels) a slice of them.
struct Tile {
  BufferId buffer = -1;
  Box box;                  ///< that the buffer has room for
  std::int64_t pitch = 0;   ///< channels of the buffer
  std::int64_t offset = 0;  ///< of the tensor's first channel, in elements
  DType type = DType::f32;

  [[nodiscard]] VoxelLayout layout() const { return {box, pitch}; }
  [[nodiscard]] std::int64_t offset_bytes() const { return offset * dtype_size(type); }
  friend bool operator==(const Tile&, const Tile&) = default;
};

/// Face buffers of a box, where they are (buffer −1: none), by dimension.
struct FaceTiles {
  std::array<Tile, 3> lo;
  std::array<Tile, 3> hi;

  [[nodiscard]] std::vector<Tile> present() const;
};

/// The part of a message that comes from, or goes to, one buffer.
struct Piece {
  Tile tile;
  Box region;
  bool add = false;
};

/// What goes to one peer and what comes from it, in global indices. A message is [N, box, C], dense.
struct Transfer {
  int peer = 0;  ///< rank in the spatial group
  Box send_box;
  std::vector<Piece> send;
  Box receive_box;
  std::vector<Piece> receive;
};

/// An exchange as every rank of the spatial group takes part in it. Phases follow one another (what one receives, the
/// next sends on, so that edges and corners arrive); the transfers of a phase go at once.
struct ExchangePlan {
  std::string name;
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::vector<std::vector<Transfer>> phases;
  DType type = DType::f32;

  [[nodiscard]] std::int64_t message_bytes(const Box& box) const {
    return dtype_size(type) * samples * channels * box.volume();
  }
  [[nodiscard]] std::int64_t bytes_sent() const;
};

/// A rank's place in a partition that may have fewer parts than the grid: neighbouring ranks then hold the same part.
class Site {
public:
  Site(const Partition& partition, const Extent& grid, const Index& place);
  [[nodiscard]] const Index& part() const { return part_; }
  /// Of the ranks that hold this part, the first: the one whose share counts in sums.
  [[nodiscard]] bool leads() const;
  /// The spatial rank that stands to the neighbouring part at `direction` (±1) as this rank to its own.
  [[nodiscard]] int neighbour(int dimension, int direction) const;
  /// The spatial rank nearest to this one among those that hold `part` of `partition`.
  static int holder(const Partition& partition, const Extent& grid, const Index& part, const Index& seen_from);

private:
  Extent grid_;
  Index place_;
  Extent copies_;
  Index part_;
};

/// A rank's own box, what it needs around it, and what its neighbours need.
struct Neighbourhood {
  Box own;
  Box wide;  ///< own box with the halo (narrower than own where a strided layer skips voxels)
  std::array<int, 3> lo_rank{-1, -1, -1};
  std::array<int, 3> hi_rank{-1, -1, -1};
  Halo receives;  ///< voxels needed from each side
  Halo gives;     ///< own voxels needed at each side
  Extent parts = Extent::cube(1);
  bool anyone = false;  ///< whether any rank of the group has something to exchange (all must then take part)
};

/// `wide_of(part)` gives the voxels a part needs, the same function on every rank.
Neighbourhood neighbourhood(const Partition& partition, const Site& site,
                            const std::function<Box(const Index&)>& wide_of);

/// Fills the voxels of `wide` outside `own`: dimension after dimension with full extents. Own voxels lie in `home`;
/// those around them in its margins or, where there are any, in `faces`.
std::vector<std::vector<Transfer>> fill_phases(const Neighbourhood& at, const Tile& home,
                                               const FaceTiles* faces = nullptr);

/// The same way back: what stands outside `own` goes home and is added there, last dimension first. With `received`
/// (faces) it is set down in those tiles and only what passes through is added to `tiles`.
std::vector<std::vector<Transfer>> return_phases(const Neighbourhood& at, const std::vector<Tile>& tiles,
                                                 const FaceTiles* received = nullptr);

/// A tensor on its way from one partition to another: the voxels that each part has and wants.
struct Move {
  const Partition& from;
  const Partition& to;
  std::function<Box(const Index&)> held;    ///< by a part of `from`; together all voxels that anybody wants, each once
  std::function<Box(const Index&)> wanted;  ///< by a part of `to`
};

/// Everything at once, each part from the nearest rank that has it. What stays on this rank is not in it: `local` gets
/// it.
std::vector<std::vector<Transfer>> reshard_phases(const Move& move, const Extent& grid, const Index& place,
                                                  const Tile& source, const Tile& target, bool add, Box* local);

/// Cuts `own` into slabs as wide as `shell` says at each side, and the rest.
struct ShellSplit {
  std::vector<Box> shell;
  Box interior;
};
ShellSplit split_shell(const Box& own, const Halo& shell);

}  // namespace halograd
