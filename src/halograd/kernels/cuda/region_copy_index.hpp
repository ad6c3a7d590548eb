#pragma once

#include "halograd/kernels/cuda/nest.hpp"
#include "halograd/kernels/cuda/packet.hpp"
#include "halograd/kernels/region_copy.hpp"

namespace halograd::cuda {

// A face of a tensor that is one or two voxels thin in width is many short runs: (width · channels) numbers each. A
// block or warp a run would leave most threads idle. Here all units of 16 bytes (or what divides runs, pitches and
// addresses) are counted through, so that every thread has one, threads side by side have units side by side, and both
// message and face are touched once.

/// The loops of a region, from its first voxel in both buffers on.
constexpr Loops region_loops(const RegionCopy& copy) {
  const Extent size = copy.region.extent();
  const Extent from = copy.from.box.extent();
  const Extent to = copy.to.box.extent();
  const std::int64_t from_row = from.w * copy.from.pitch;
  const std::int64_t to_row = to.w * copy.to.pitch;
  return {{copy.channels, 1, 1},
          {size.w, copy.from.pitch, copy.to.pitch},
          {size.h, from_row, to_row},
          {size.d, from.h * from_row, to.h * to_row},
          {copy.samples, from.volume() * copy.from.pitch, to.volume() * copy.to.pitch}};
}

/// Moves (or adds) units of `width` numbers.
template <typename T, int width, bool add>
struct MoveUnits {
  using Unit = Packet<T, width>;
  struct Loaded {
    Unit unit;
    T* to = nullptr;
  };

  Nest nest;
  const T* from = nullptr;
  T* to = nullptr;

  [[nodiscard]] constexpr Loaded load(std::uint32_t item) const {
    const Nest::Place place = nest.place(item);
    Loaded loaded{cuda::load<width>(from + place.from), to + place.to};
    if constexpr (add) {
      const Unit before = cuda::load<width>(loaded.to);
      for (std::size_t i = 0; i < width; ++i) {
        loaded.unit.values[i] = T(static_cast<float>(before.values[i]) + static_cast<float>(loaded.unit.values[i]));
      }
    }
    return loaded;
  }
  constexpr void store(const Loaded& loaded) const { cuda::store(loaded.unit, loaded.to); }
};

template <typename T, bool add, int width, typename Launch>
void move_region_in_units(const Loops& loops, const T* from, T* to, const Launch& launch) {
  if constexpr (width > 1) {
    constexpr auto bytes = static_cast<std::int64_t>(width * sizeof(T));
    if (!aligned(from, bytes) || !aligned(to, bytes) || !loops.unit_fits(width, width, width)) {
      return move_region_in_units<T, add, width / 2>(loops, from, to, launch);
    }
  }
  loops.in_units(width).for_each_part(
      most_items, [&](const Loops& part, std::int64_t from_offset, std::int64_t to_offset) {
        const Nest nest(part);
        launch(MoveUnits<T, width, add>{nest, from + from_offset, to + to_offset}, nest.items());
      });
}

/// Calls `launch(MoveUnits, items)` with the widest units that fit, of at most 16 bytes.
template <bool add, typename T, typename Launch>
void move_region(const RegionCopy& copy, const T* from, T* to, const Launch& launch) {
  if (copy.samples <= 0 || copy.channels <= 0 || copy.region.empty()) return;
  const T* const first_from = from + copy.from.offset(0, copy.region.lo);
  T* const first_to = to + copy.to.offset(0, copy.region.lo);
  move_region_in_units<T, add, static_cast<int>(access_bytes / static_cast<std::int64_t>(sizeof(T)))>(
      region_loops(copy), first_from, first_to, launch);
}

}  // namespace halograd::cuda
