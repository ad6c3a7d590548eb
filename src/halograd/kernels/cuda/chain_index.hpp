#pragma once

#include "halograd/kernels/chain.hpp"

#include <cstdint>

/// What the chain's CUDA kernels compute, as constexpr functions of plain numbers and pointers that run on host and
/// device alike: nothing here knows CUDA, so that tests can run every block and thread on the host.
namespace halograd::cuda::chain {

/// A voxel in global indices, in 32 bits: arithmetic in 64 costs a GPU several times as much.
struct Point {
  std::int32_t d = 0;
  std::int32_t h = 0;
  std::int32_t w = 0;

  constexpr std::int32_t& operator[](int i) { return i == 0 ? d : (i == 1 ? h : w); }
  constexpr std::int32_t operator[](int i) const { return i == 0 ? d : (i == 1 ? h : w); }
  friend constexpr bool operator==(const Point&, const Point&) = default;
};

constexpr Point point_of(const Extent& extent) {
  return {static_cast<std::int32_t>(extent.d), static_cast<std::int32_t>(extent.h),
          static_cast<std::int32_t>(extent.w)};
}

/// The voxels from `lo` to just before `hi`.
struct Region {
  Point lo;
  Point hi;

  [[nodiscard]] constexpr bool contains(const Point& at) const {
    return at.d >= lo.d && at.d < hi.d && at.h >= lo.h && at.h < hi.h && at.w >= lo.w && at.w < hi.w;
  }
  [[nodiscard]] constexpr std::int32_t size(int i) const { return hi[i] > lo[i] ? hi[i] - lo[i] : 0; }
  [[nodiscard]] constexpr bool empty() const { return size(0) == 0 || size(1) == 0 || size(2) == 0; }
  friend constexpr bool operator==(const Region&, const Region&) = default;
};

constexpr Region region_of(const Box& box) {
  return {point_of(box.lo), point_of(box.hi)};
}

/// Divides by a number known beforehand with a multiplication (Granlund and Montgomery 1994): n below 2³¹.
class Divisor {
public:
  constexpr Divisor() = default;
  constexpr explicit Divisor(std::uint32_t value) : value_(value) {
    while ((std::uint64_t{1} << shift_) < value_) ++shift_;
    const std::uint64_t excess = (std::uint64_t{1} << shift_) - value_;
    factor_ = static_cast<std::uint32_t>((excess << 32) / value_ + 1);
  }

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr std::uint32_t quotient(std::uint32_t n) const {
    return (static_cast<std::uint32_t>((std::uint64_t{n} * factor_) >> 32) + n) >> shift_;
  }

private:
  std::uint32_t value_ = 1;
  std::uint32_t factor_ = 1;
  std::uint32_t shift_ = 0;
};

/// VoxelLayout in 32 bits: all voxels of all samples together are fewer than 2³¹.
struct Placement {
  std::uint32_t depth = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t origin = 0;  ///< voxel (0,0,0) of the volume comes so many before the first
  std::int32_t pitch = 0;

  Placement() = default;
  constexpr Placement(const Region& box, std::int32_t voxel_pitch)
      : depth(static_cast<std::uint32_t>(box.size(0))),
        height(static_cast<std::uint32_t>(box.size(1))),
        width(static_cast<std::uint32_t>(box.size(2))),
        origin(voxels_to(0, box.lo)),
        pitch(voxel_pitch) {}

  /// Where a voxel begins; also of one just outside the box, from where others are counted.
  [[nodiscard]] constexpr std::int64_t offset(std::int32_t n, const Point& at) const {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(voxels_to(n, at) - origin)) * pitch;
  }

private:
  /// May wrap around, and back again when the origin is taken off.
  [[nodiscard]] constexpr std::uint32_t voxels_to(std::int32_t n, const Point& at) const {
    const std::uint32_t plane = static_cast<std::uint32_t>(n) * depth + static_cast<std::uint32_t>(at.d);
    const std::uint32_t row = plane * height + static_cast<std::uint32_t>(at.h);
    return row * width + static_cast<std::uint32_t>(at.w);
  }
};

/// Sides of a box in the order D low, D high, H low, …
constexpr int side_count = 6;
constexpr int own_side = -1;

/// A ChainDesc as the kernels see it.
struct Geometry {
  std::int32_t samples = 0;
  std::int32_t channels = 0;
  Point volume;      ///< of y
  Point out_volume;  ///< of the output
  Region in;
  Region out;
  Region written;  ///< outputs there is room for in dst: of all others the gradient is 0
  Point kernel;
  Point stride;
  Point padding;
  Divisor stride_of[3];
  Placement src;
  Placement dst;
  Placement winners;
  Region faces[side_count];     ///< neighbours' voxels; empty where there are none
  Region returned[side_count];  ///< own voxels that neighbours read
  bool normalise = false;
  bool per_sample = false;
  bool accumulate = false;
  float slope = 1;
  float share = 1;  ///< of an average's gradient that each voxel gets, and what makes an average of a sum
};

/// The voxels of a face (outside `in`) or of what came back for it (inside).
constexpr Region side_region(const ChainDesc& desc, int side, bool inside) {
  const int i = side / 2;
  const bool high = side % 2 == 1;
  Box box = desc.in;
  for (int earlier = 0; earlier < i; ++earlier) {
    box.lo[earlier] -= desc.faces.lo[earlier];
    box.hi[earlier] += desc.faces.hi[earlier];
  }
  const Halo& widths = inside ? desc.returned : desc.faces;
  const std::int64_t edge = high ? desc.in.hi[i] : desc.in.lo[i];
  const std::int64_t width = high ? widths.hi[i] : widths.lo[i];
  const bool above = high != inside;
  box.lo[i] = above ? edge : edge - width;
  box.hi[i] = above ? edge + width : edge;
  return region_of(box);
}

constexpr Geometry geometry_of(const ChainDesc& desc) {
  Geometry g;
  g.samples = static_cast<std::int32_t>(desc.samples);
  g.channels = static_cast<std::int32_t>(desc.channels);
  g.volume = point_of(desc.in_extent);
  g.out_volume = point_of(desc.out_extent);
  g.in = region_of(desc.in);
  g.out = region_of(desc.out);
  g.written = region_of(desc.out.intersect(desc.dst.box));
  g.kernel = point_of(desc.window.kernel);
  g.stride = point_of(desc.window.stride);
  g.padding = point_of(desc.window.padding);
  for (int i = 0; i < 3; ++i) g.stride_of[i] = Divisor(static_cast<std::uint32_t>(g.stride[i]));
  g.src = Placement(region_of(desc.src.box), static_cast<std::int32_t>(desc.src.pitch));
  g.dst = Placement(region_of(desc.dst.box), static_cast<std::int32_t>(desc.dst.pitch));
  g.winners = Placement(g.out, g.channels);
  for (int side = 0; side < side_count; ++side) {
    g.faces[side] = side_region(desc, side, false);
    g.returned[side] = side_region(desc, side, true);
  }
  g.normalise = desc.normalise;
  g.per_sample = desc.per_sample;
  g.accumulate = desc.accumulate;
  g.slope = desc.negative_slope;
  g.share = desc.pool == PoolKind::average ? 1.0F / static_cast<float>(desc.window.kernel.volume()) : 1.0F;
  return g;
}

/// The side of the windows that have kernels of their own, 2 (2/2/0) or 3 (3/2/1); 0 of all others.
constexpr int known_window(const ChainDesc& desc) {
  if (desc.pool == PoolKind::none) return 0;
  if (desc.window == Window{Extent::cube(3), Extent::cube(2), Extent::cube(1)}) return 3;
  return desc.window == Window{Extent::cube(2), Extent::cube(2), {}} ? 2 : 0;
}

/// Whether so many neighbouring channels can always be moved at once, so far as shapes go.
constexpr bool takes_vectors(const ChainDesc& desc, std::int64_t lanes) {
  return desc.channels % lanes == 0 && desc.src.pitch % lanes == 0 && desc.dst.pitch % lanes == 0;
}

/// Whether the gradient of y depends on y: else y is not there to be read.
constexpr bool reads_y(const Geometry& g) {
  return g.normalise || g.slope != 1;
}

/// Sets of statistics, and the samples of each.
constexpr std::int32_t set_count(const Geometry& g) {
  return g.per_sample ? g.samples : 1;
}
constexpr std::int32_t set_samples(const Geometry& g) {
  return g.per_sample ? 1 : g.samples;
}

/// The side whose face holds a voxel that a window reads; own_side inside `in`. Corners are in the later dimension's.
constexpr int side_of(const Geometry& g, const Point& at) {
  for (int i = 2; i >= 0; --i) {
    if (at[i] < g.in.lo[i]) return 2 * i;
    if (at[i] >= g.in.hi[i]) return 2 * i + 1;
  }
  return own_side;
}

/// Where the channels of a voxel that a window reads begin: in y, or in the face that holds it.
template <typename T>
constexpr const T* source_of(const Geometry& g, const T* y, const T* const* faces, std::int32_t n, const Point& at) {
  const int side = side_of(g, at);
  if (side == own_side) return y + g.src.offset(n, at);
  return faces[side] + Placement(g.faces[side], g.channels).offset(n, at);
}

constexpr Point window_start(const Geometry& g, const Point& out) {
  return {out.d * g.stride.d - g.padding.d, out.h * g.stride.h - g.padding.h, out.w * g.stride.w - g.padding.w};
}

/// The part of an output's window inside the volume.
constexpr Region window_of(const Geometry& g, const Point& out) {
  const Point start = window_start(g, out);
  Region window;
  for (int i = 0; i < 3; ++i) {
    window.lo[i] = start[i] < 0 ? 0 : start[i];
    window.hi[i] = start[i] + g.kernel[i] < g.volume[i] ? start[i] + g.kernel[i] : g.volume[i];
  }
  return window;
}

/// Whether all that the outputs `part` read lies in `in`.
constexpr bool reads_own_only(const Geometry& g, const Region& part) {
  const Region first = window_of(g, part.lo);
  const Region last = window_of(g, {part.hi.d - 1, part.hi.h - 1, part.hi.w - 1});
  for (int i = 0; i < 3; ++i) {
    if (first.lo[i] < g.in.lo[i] || last.hi[i] > g.in.hi[i]) return false;
  }
  return true;
}

/// The outputs with a gradient whose windows hold a voxel: j·s − p ≤ voxel ≤ j·s − p + k − 1.
constexpr Region readers_of(const Geometry& g, const Point& at) {
  Region readers;
  for (int i = 0; i < 3; ++i) {
    const std::int32_t seen = at[i] + g.padding[i];
    const std::int32_t before = seen - g.kernel[i];  // the windows up to here end before the voxel
    const auto last = static_cast<std::int32_t>(g.stride_of[i].quotient(static_cast<std::uint32_t>(seen)));
    const std::int32_t first =
        before < 0 ? 0 : static_cast<std::int32_t>(g.stride_of[i].quotient(static_cast<std::uint32_t>(before))) + 1;
    readers.lo[i] = first > g.written.lo[i] ? first : g.written.lo[i];
    readers.hi[i] = last + 1 < g.written.hi[i] ? last + 1 : g.written.hi[i];
  }
  return readers;
}

/// The place of a voxel in an output's window, padding counted, w fastest: what argmax names winners by.
constexpr std::int32_t place_in_window(const Geometry& g, const Point& out, const Point& at) {
  const Point start = window_start(g, out);
  return ((at.d - start.d) * g.kernel.h + at.h - start.h) * g.kernel.w + at.w - start.w;
}

/// How many samples the statistics of one channel are over, times voxels.
constexpr double set_voxels(const Geometry& g) {
  return static_cast<double>(set_samples(g)) * g.in.size(0) * g.in.size(1) * g.in.size(2);
}

}  // namespace halograd::cuda::chain
