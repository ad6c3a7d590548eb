#pragma once

#include <array>
#include <cstdint>

namespace halograd {

/// Three spatial numbers in the order depth, height, width: an extent, an index, a kernel, a stride.
struct Extent {
  std::int64_t d = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;

  constexpr std::int64_t& operator[](int dimension) { return dimension == 0 ? d : (dimension == 1 ? h : w); }
  constexpr std::int64_t operator[](int dimension) const { return dimension == 0 ? d : (dimension == 1 ? h : w); }
  [[nodiscard]] constexpr std::int64_t volume() const { return d * h * w; }
  static constexpr Extent cube(std::int64_t width) { return {width, width, width}; }
  friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

/// A point of the global (unpartitioned) volume, or an offset between two.
using Index = Extent;

/// What one sample looks like on no rank in particular.
struct GlobalShape {
  std::int64_t channels = 0;
  Extent extent;

  [[nodiscard]] constexpr std::int64_t elements() const { return channels * extent.volume(); }
  friend constexpr bool operator==(const GlobalShape&, const GlobalShape&) = default;
};

/// What one rank holds: its samples of the mini-batch and a dense NDHWC buffer of its own extent, margins included.
struct LocalShape {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  Extent extent;

  [[nodiscard]] constexpr std::int64_t elements() const { return samples * channels * extent.volume(); }
  friend constexpr bool operator==(const LocalShape&, const LocalShape&) = default;
};

}  // namespace halograd
