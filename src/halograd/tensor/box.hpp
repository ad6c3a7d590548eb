#pragma once

#include "halograd/tensor/shape.hpp"

#include <algorithm>

namespace halograd {

/// A hyperslab: the voxels from `lo` to just before `hi`, in global indices.
struct Box {
  Index lo;
  Index hi;

  [[nodiscard]] constexpr Extent extent() const { return {hi.d - lo.d, hi.h - lo.h, hi.w - lo.w}; }
  [[nodiscard]] constexpr bool empty() const { return hi.d <= lo.d || hi.h <= lo.h || hi.w <= lo.w; }
  [[nodiscard]] constexpr std::int64_t volume() const { return empty() ? 0 : extent().volume(); }
  [[nodiscard]] constexpr bool contains(const Index& i) const {
    return i.d >= lo.d && i.d < hi.d && i.h >= lo.h && i.h < hi.h && i.w >= lo.w && i.w < hi.w;
  }
  [[nodiscard]] constexpr bool contains(const Box& other) const { return other.empty() || intersect(other) == other; }

  [[nodiscard]] constexpr Box intersect(const Box& other) const {
    Box result;
    for (int i = 0; i < 3; ++i) {
      result.lo[i] = std::max(lo[i], other.lo[i]);
      result.hi[i] = std::min(hi[i], other.hi[i]);
    }
    return result;
  }
  /// The smallest box that holds both.
  [[nodiscard]] constexpr Box hull(const Box& other) const {
    Box result;
    for (int i = 0; i < 3; ++i) {
      result.lo[i] = std::min(lo[i], other.lo[i]);
      result.hi[i] = std::max(hi[i], other.hi[i]);
    }
    return result;
  }
  /// The same voxels, counted from `origin`.
  [[nodiscard]] constexpr Box relative_to(const Index& origin) const {
    return {{lo.d - origin.d, lo.h - origin.h, lo.w - origin.w}, {hi.d - origin.d, hi.h - origin.h, hi.w - origin.w}};
  }
  static constexpr Box whole(const Extent& extent) { return {{0, 0, 0}, extent}; }
  friend constexpr bool operator==(const Box&, const Box&) = default;
};

}  // namespace halograd
