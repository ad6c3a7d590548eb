#include "halograd/plan/exchange_plan.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>

namespace halograd {
namespace {

/// The pieces of `box` that lie in the regions of `holdings`, which hold it whole and do not overlap.
std::vector<Piece> pieces(const Box& box, const std::vector<Piece>& holdings, bool add) {
  std::vector<Piece> result;
  std::int64_t covered = 0;
  for (const Piece& holding : holdings) {
    const Box region = box.intersect(holding.region);
    if (region.empty()) continue;
    covered += region.volume();
    result.push_back({holding.tile, region, add});
  }
  if (covered != box.volume()) throw UsageError("a halo message reaches voxels that its sender does not hold");
  return result;
}

std::vector<Piece> whole(const std::vector<Tile>& tiles) {
  std::vector<Piece> holdings;
  for (const Tile& tile : tiles) holdings.push_back({tile, tile.box});
  return holdings;
}

/// The slab between `lo` and `hi` of `dimension`, wide along the dimensions before it and own along those after.
Box slab(const Neighbourhood& at, int dimension, std::int64_t lo, std::int64_t hi) {
  Box box = at.own.intersect(at.wide);
  for (int i = 0; i < dimension; ++i) {
    box.lo[i] = at.wide.lo[i];
    box.hi[i] = at.wide.hi[i];
  }
  box.lo[dimension] = lo;
  box.hi[dimension] = hi;
  return box;
}

struct SlabPair {
  int peer;
  bool high;
  Box outside;  ///< voxels of the neighbour that this rank holds
  Box inside;   ///< own voxels that the neighbour holds
};

std::vector<SlabPair> slab_pairs(const Neighbourhood& at, int i) {
  std::vector<SlabPair> pairs;
  if (at.receives.lo[i] > 0 || at.gives.lo[i] > 0) {
    pairs.push_back({at.lo_rank[static_cast<std::size_t>(i)], false,
                     slab(at, i, at.own.lo[i] - at.receives.lo[i], at.own.lo[i]),
                     slab(at, i, at.own.lo[i], at.own.lo[i] + at.gives.lo[i])});
  }
  if (at.receives.hi[i] > 0 || at.gives.hi[i] > 0) {
    pairs.push_back({at.hi_rank[static_cast<std::size_t>(i)], true,
                     slab(at, i, at.own.hi[i], at.own.hi[i] + at.receives.hi[i]),
                     slab(at, i, at.own.hi[i] - at.gives.hi[i], at.own.hi[i])});
  }
  return pairs;
}

}  // namespace

std::vector<Tile> FaceTiles::present() const {
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < 3; ++i) {
    if (lo[i].buffer >= 0) tiles.push_back(lo[i]);
    if (hi[i].buffer >= 0) tiles.push_back(hi[i]);
  }
  return tiles;
}

std::int64_t ExchangePlan::bytes_sent() const {
  std::int64_t bytes = 0;
  for (const auto& phase : phases) {
    for (const Transfer& transfer : phase) bytes += message_bytes(transfer.send_box);
  }
  return bytes;
}

Site::Site(const Partition& partition, const Extent& grid, const Index& place) : grid_(grid), place_(place) {
  for (int i = 0; i < 3; ++i) {
    copies_[i] = grid[i] / partition.parts()[i];
    part_[i] = place[i] / copies_[i];
  }
}

bool Site::leads() const {
  return place_.d % copies_.d == 0 && place_.h % copies_.h == 0 && place_.w % copies_.w == 0;
}

int Site::neighbour(int dimension, int direction) const {
  Index at = place_;
  at[dimension] += direction * copies_[dimension];
  return static_cast<int>((at.d * grid_.h + at.h) * grid_.w + at.w);
}

int Site::holder(const Partition& partition, const Extent& grid, const Index& part, const Index& seen_from) {
  Index at;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t copies = grid[i] / partition.parts()[i];
    at[i] = part[i] * copies + seen_from[i] % copies;
  }
  return static_cast<int>((at.d * grid.h + at.h) * grid.w + at.w);
}

namespace {

/// Windows are separable, so that one line of parts a dimension tells of all.
bool anyone_needs(const Partition& partition, const std::function<Box(const Index&)>& wide_of) {
  for (int i = 0; i < 3; ++i) {
    for (Index part; part[i] < partition.parts()[i]; ++part[i]) {
      const Box own = partition.box(part);
      const Box wide = wide_of(part);
      if (wide.lo[i] < own.lo[i] || wide.hi[i] > own.hi[i]) return true;
    }
  }
  return false;
}

}  // namespace

Neighbourhood neighbourhood(const Partition& partition, const Site& site,
                            const std::function<Box(const Index&)>& wide_of) {
  Neighbourhood at;
  at.own = partition.box(site.part());
  at.wide = wide_of(site.part());
  at.parts = partition.parts();
  at.anyone = anyone_needs(partition, wide_of);
  for (int i = 0; i < 3; ++i) {
    const auto index = static_cast<std::size_t>(i);
    Index beside = site.part();
    if (site.part()[i] > 0) {
      beside[i] = site.part()[i] - 1;
      at.lo_rank[index] = site.neighbour(i, -1);
      at.receives.lo[i] = std::max<std::int64_t>(0, at.own.lo[i] - at.wide.lo[i]);
      at.gives.lo[i] = std::max<std::int64_t>(0, wide_of(beside).hi[i] - at.own.lo[i]);
    }
    if (site.part()[i] + 1 < partition.parts()[i]) {
      beside[i] = site.part()[i] + 1;
      at.hi_rank[index] = site.neighbour(i, +1);
      at.receives.hi[i] = std::max<std::int64_t>(0, at.wide.hi[i] - at.own.hi[i]);
      at.gives.hi[i] = std::max<std::int64_t>(0, at.own.hi[i] - wide_of(beside).lo[i]);
    }
  }
  return at;
}

std::vector<std::vector<Transfer>> fill_phases(const Neighbourhood& at, const Tile& home, const FaceTiles* faces) {
  std::vector<Piece> holdings{{home, home.box}};
  if (faces != nullptr) {
    holdings = whole(faces->present());
    holdings.push_back({home, at.own});  // what its margins hold is another exchange's
  }
  std::vector<std::vector<Transfer>> phases;
  for (int i = 0; i < 3; ++i) {
    if (at.parts[i] == 1) continue;
    std::vector<Transfer> phase;
    for (const SlabPair& pair : slab_pairs(at, i)) {
      phase.push_back({pair.peer, pair.inside, pieces(pair.inside, holdings, false), pair.outside,
                       pieces(pair.outside, holdings, false)});
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

std::vector<std::vector<Transfer>> return_phases(const Neighbourhood& at, const std::vector<Tile>& tiles,
                                                 const FaceTiles* received) {
  std::vector<std::vector<Transfer>> phases;
  for (int i = 2; i >= 0; --i) {
    if (at.parts[i] == 1) continue;
    std::vector<Transfer> phase;
    for (const SlabPair& pair : slab_pairs(at, i)) {
      std::vector<Piece> into;
      if (received == nullptr) {
        into = pieces(pair.inside, whole(tiles), true);
      } else if (!pair.inside.empty()) {
        const auto index = static_cast<std::size_t>(i);
        into.push_back({pair.high ? received->hi[index] : received->lo[index], pair.inside, false});
        for (const Tile& tile : tiles) {
          const Box passing = pair.inside.intersect(tile.box);
          if (tile.buffer >= 0 && !passing.empty()) into.push_back({tile, passing, true});
        }
      }
      phase.push_back(
          {pair.peer, pair.outside, pieces(pair.outside, whole(tiles), false), pair.inside, std::move(into)});
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

std::vector<std::vector<Transfer>> reshard_phases(const Move& move, const Extent& grid, const Index& place,
                                                  const Tile& source, const Tile& target, bool add, Box* local) {
  std::vector<Transfer> phase;
  const int self = static_cast<int>((place.d * grid.h + place.h) * grid.w + place.w);
  const Index own_part = Site(move.from, grid, place).part();
  const Box wanted = move.wanted(Site(move.to, grid, place).part());
  *local = Box{};
  for (int peer = 0; peer < grid.volume(); ++peer) {
    const Index there{peer / (grid.h * grid.w), peer / grid.w % grid.h, peer % grid.w};
    Transfer transfer{peer, {}, {}, {}, {}};
    // A part held by several ranks comes from the one that is nearest to the receiver.
    if (Site::holder(move.from, grid, own_part, there) == self) {
      transfer.send_box = move.held(own_part).intersect(move.wanted(Site(move.to, grid, there).part()));
    }
    const Index their_part = Site(move.from, grid, there).part();
    if (Site::holder(move.from, grid, their_part, place) == peer) {
      transfer.receive_box = move.held(their_part).intersect(wanted);
    }
    if (transfer.send_box.empty()) transfer.send_box = {};
    if (transfer.receive_box.empty()) transfer.receive_box = {};
    if (peer == self) {
      *local = transfer.send_box;
      continue;
    }
    if (!transfer.send_box.empty()) transfer.send = {{source, transfer.send_box, false}};
    if (!transfer.receive_box.empty()) transfer.receive = {{target, transfer.receive_box, add}};
    if (!transfer.send.empty() || !transfer.receive.empty()) phase.push_back(std::move(transfer));
  }
  std::vector<std::vector<Transfer>> phases;
  phases.push_back(std::move(phase));
  return phases;
}

ShellSplit split_shell(const Box& own, const Halo& shell) {
  ShellSplit split;
  Box rest = own;
  for (int i = 0; i < 3; ++i) {
    Box slab = rest;
    slab.hi[i] = std::min(rest.hi[i], rest.lo[i] + shell.lo[i]);
    if (!slab.empty()) split.shell.push_back(slab);
    rest.lo[i] = slab.hi[i];
    slab = rest;
    slab.lo[i] = std::max(rest.lo[i], rest.hi[i] - shell.hi[i]);
    if (!slab.empty()) split.shell.push_back(slab);
    rest.hi[i] = slab.lo[i];
  }
  split.interior = rest;
  return split;
}

}  // namespace halograd
