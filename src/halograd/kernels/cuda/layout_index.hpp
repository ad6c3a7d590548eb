#pragma once

#include "halograd/kernels/cuda/nest.hpp"
#include "halograd/tensor/shape.hpp"

namespace halograd::cuda {

// These tensors are what a dense head reads, some thousand numbers: plain loops whose writes lie together are enough.

constexpr Loops to_channels_first_loops(const LocalShape& shape) {
  const std::int64_t voxels = shape.extent.volume();
  const std::int64_t sample = voxels * shape.channels;
  return {{voxels, shape.channels, 1}, {shape.channels, 1, voxels}, {shape.samples, sample, sample}};
}

constexpr Loops to_channels_last_loops(const LocalShape& shape) {
  const std::int64_t voxels = shape.extent.volume();
  const std::int64_t sample = voxels * shape.channels;
  return {{shape.channels, voxels, 1}, {voxels, 1, shape.channels}, {shape.samples, sample, sample}};
}

template <typename From, typename To>
struct MoveNumbers {
  Nest nest;
  const From* from = nullptr;
  To* to = nullptr;
  constexpr void operator()(std::uint32_t item) const {
    const Nest::Place place = nest.place(item);
    to[place.to] = To(static_cast<float>(from[place.from]));
  }
};

/// Calls `launch(MoveNumbers, items)`.
template <typename From, typename To, typename Launch>
void move_numbers(const Loops& loops, const From* from, To* to, const Launch& launch) {
  loops.for_each_part(most_items, [&](const Loops& part, std::int64_t from_offset, std::int64_t to_offset) {
    const Nest nest(part);
    launch(MoveNumbers<From, To>{nest, from + from_offset, to + to_offset}, nest.items());
  });
}

}  // namespace halograd::cuda
