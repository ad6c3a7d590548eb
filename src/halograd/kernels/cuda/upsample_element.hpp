#pragma once

#include "halograd/kernels/cuda/nest.hpp"
#include "halograd/kernels/cuda/packet.hpp"
#include "halograd/kernels/cuda/upsample_axis.hpp"

#include <array>
#include <cstdint>

namespace halograd::cuda {

/// Where voxels lie in a buffer.
struct VoxelSteps {
  std::int64_t sample = 0;
  Extent step;
  Index lo;

  /// Numbers of a unit of channels; a constant here would make the compiler see through addresses and split stores.
  std::int64_t unit = 1;

  constexpr VoxelSteps() = default;
  constexpr VoxelSteps(const VoxelLayout& layout, int width)
      : sample(layout.sample_elements()),
        step{layout.box.extent().h * layout.box.extent().w * layout.pitch, layout.box.extent().w * layout.pitch,
             layout.pitch},
        lo(layout.box.lo),
        unit(width) {}

  /// Along one dimension.
  [[nodiscard]] constexpr std::int64_t offset(int dimension, std::int64_t at) const {
    return (at - lo[dimension]) * step[dimension];
  }
};

/// Items of a launch: units of channels of the voxels of a box, of some samples from `first_sample` on.
struct UpsampleItems {
  Divider units;
  std::array<Divider, 3> extent;
  std::array<std::int32_t, 3> lo{};
  std::uint32_t first_sample = 0;
  std::uint32_t items = 0;

  struct Item {
    std::int64_t sample;
    std::array<std::int32_t, 3> at;
    std::uint32_t unit;
  };
  [[nodiscard]] constexpr Item item(std::uint32_t rest) const {
    Item item{};
    item.unit = units.split(rest);
    for (std::size_t i = 3; i-- > 0;) item.at[i] = lo[i] + static_cast<std::int32_t>(extent[i].split(rest));
    item.sample = first_sample + rest;
    return item;
  }
};

/// What both directions share. `width`: channels of a unit.
template <typename T, int width>
struct UpsampleShape {
  UpsampleItems items;
  std::array<UpsampleAxis, 3> axes;
  VoxelSteps small;  ///< of x and dx
  VoxelSteps large;  ///< of y and dy

  using Sums = std::array<float, width>;
  static constexpr void accumulate(const T* from, float weight, Sums& sums) {
    const std::array<T, width> values = load_run<width>(from);
    for (std::size_t i = 0; i < width; ++i) sums[i] += weight * static_cast<float>(values[i]);
  }
  static constexpr void write(const Sums& sums, T* to) {
    std::array<T, width> values;
    for (std::size_t i = 0; i < width; ++i) values[i] = T(sums[i]);
    store_run(values, to);
  }
};

template <typename T, int width>
struct UpsampleForward {
  UpsampleShape<T, width> shape;
  const T* x = nullptr;
  T* y = nullptr;

  constexpr void operator()(std::uint32_t number) const {
    const auto item = shape.items.item(number);
    std::array<Taps, 3> taps;
    std::int64_t to = item.sample * shape.large.sample + std::int64_t{item.unit} * shape.large.unit;
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(i);
      taps[at] = shape.axes[at].taps(item.at[at]);
      to += shape.large.offset(i, item.at[at]);
    }
    const T* const source = x + item.sample * shape.small.sample + std::int64_t{item.unit} * shape.small.unit;
    typename UpsampleShape<T, width>::Sums sums{};
    for (int corner = 0; corner < 8; ++corner) {
      const std::array<int, 3> tap{corner / 4, corner / 2 % 2, corner % 2};
      float weight = 1;
      std::int64_t from = 0;
      bool there = true;
      for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<std::size_t>(i);
        there = there && tap[at] < taps[at].count;
        weight *= taps[at].weights[static_cast<std::size_t>(tap[at])];
        from += shape.small.offset(i, taps[at].first + tap[at]);
      }
      if (there) shape.accumulate(source + from, weight, sums);
    }
    shape.write(sums, y + to);
  }
};

template <typename T, int width>
struct UpsampleBackward {
  UpsampleShape<T, width> shape;
  const T* dy = nullptr;
  T* dx = nullptr;

  constexpr void operator()(std::uint32_t number) const {
    const auto item = shape.items.item(number);
    std::array<std::int32_t, 3> first{};
    std::array<std::int32_t, 3> end{};
    std::int64_t to = item.sample * shape.small.sample + std::int64_t{item.unit} * shape.small.unit;
    std::int64_t from = item.sample * shape.large.sample + std::int64_t{item.unit} * shape.large.unit;
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(i);
      first[at] = shape.axes[at].first_output(item.at[at]);
      end[at] = shape.axes[at].end_output(item.at[at]);
      to += shape.small.offset(i, item.at[at]);
      from += shape.large.offset(i, first[at]);
    }
    typename UpsampleShape<T, width>::Sums sums{};
    const T* plane = dy + from;
    for (std::int32_t d = first[0]; d < end[0]; ++d, plane += shape.large.step.d) {
      const float of_plane = shape.axes[0].weight(item.at[0], d);
      const T* line = plane;
      for (std::int32_t h = first[1]; h < end[1]; ++h, line += shape.large.step.h) {
        const float of_line = of_plane * shape.axes[1].weight(item.at[1], h);
        const T* voxel = line;
        for (std::int32_t w = first[2]; w < end[2]; ++w, voxel += shape.large.step.w) {
          shape.accumulate(voxel, of_line * shape.axes[2].weight(item.at[2], w), sums);
        }
      }
    }
    shape.write(sums, dx + to);
  }
};

/// Calls `body(items)` for parts of at most `limit` items of the voxels of `box`.
template <typename Body>
void for_each_upsample_part(std::int64_t first_sample, std::int64_t samples, const Box& box, std::int64_t units,
                            std::int64_t limit, const Body& body) {
  if (samples <= 0 || box.empty() || units <= 0) return;
  const Extent size = box.extent();
  if (samples * box.volume() * units > limit) {
    if (samples > 1) {
      for_each_upsample_part(first_sample, samples / 2, box, units, limit, body);
      return for_each_upsample_part(first_sample + samples / 2, samples - samples / 2, box, units, limit, body);
    }
    const int cut = size.d > 1 ? 0 : size.h > 1 ? 1 : 2;
    if (size[cut] > 1) {
      Box low = box;
      Box high = box;
      low.hi[cut] = high.lo[cut] = box.lo[cut] + size[cut] / 2;
      for_each_upsample_part(first_sample, samples, low, units, limit, body);
      return for_each_upsample_part(first_sample, samples, high, units, limit, body);
    }
  }
  UpsampleItems items;
  items.units = Divider(static_cast<std::uint32_t>(units));
  for (int i = 0; i < 3; ++i) {
    items.extent[static_cast<std::size_t>(i)] = Divider(static_cast<std::uint32_t>(size[i]));
    items.lo[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(box.lo[i]);
  }
  items.first_sample = static_cast<std::uint32_t>(first_sample);
  items.items = static_cast<std::uint32_t>(samples * box.volume() * units);
  body(items);
}

/// Calls `launch(body, items)` with UpsampleForward or UpsampleBackward (`Direction`) over the voxels of `box`, in
/// units of 16 bytes where channels, pitches and addresses allow, else of one channel.
template <template <typename, int> typename Direction, typename T, typename Launch>
void upsample_units(const UpsampleDesc& desc, const Box& box, const T* from, T* to, const Launch& launch) {
  const auto with_width = [&]<int width>(std::integral_constant<int, width>) {
    Direction<T, width> body{{}, from, to};
    const Window window = upsample_window(desc.kind, desc.factor);
    for (int i = 0; i < 3; ++i) body.shape.axes[static_cast<std::size_t>(i)] = UpsampleAxis(desc, window, i);
    body.shape.small = VoxelSteps(desc.src, width);
    body.shape.large = VoxelSteps(desc.dst, width);
    for_each_upsample_part(0, desc.samples, box, desc.channels / width, most_items, [&](const UpsampleItems& items) {
      body.shape.items = items;
      launch(body, items.items);
    });
  };
  constexpr int width = packet_size<T>(static_cast<int>(access_bytes));
  const bool whole = desc.channels % width == 0 && desc.src.pitch % width == 0 && desc.dst.pitch % width == 0;
  if (whole && aligned(from, access_bytes) && aligned(to, access_bytes)) {
    with_width(std::integral_constant<int, width>{});
  } else {
    with_width(std::integral_constant<int, 1>{});
  }
}

}  // namespace halograd::cuda
