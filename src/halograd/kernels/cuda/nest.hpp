#pragma once

#include "halograd/kernels/cuda/divider.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>

namespace halograd::cuda {

/// Items of a launch are counted in 32 bits, so that dividing them is cheap; what has more is several launches.
constexpr std::int64_t most_items = std::int64_t{1} << 30;

/// One of the loops in which numbers move from one buffer to another: `count` steps of `from` and `to` numbers.
struct Loop {
  std::int64_t count = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Nested loops, innermost first. Loops that are one run in both buffers are joined: rows where neither side is a
/// channel slice, whole planes where no margin lies between rows.
class Loops {
public:
  static constexpr int most = 5;

  constexpr Loops(std::initializer_list<Loop> loops) {
    for (const Loop& loop : loops) add(loop);
  }

  [[nodiscard]] constexpr int depth() const { return depth_; }
  [[nodiscard]] constexpr const Loop& operator[](int i) const { return loops_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] constexpr std::int64_t items() const {
    std::int64_t product = 1;
    for (int i = 0; i < depth_; ++i) product *= (*this)[i].count;
    return product;
  }

  /// Whether the innermost loop is made of whole units of `width` numbers that lie together in both buffers, at
  /// multiples of `from_width` and `to_width` numbers from where they begin.
  [[nodiscard]] constexpr bool unit_fits(std::int64_t width, std::int64_t from_width, std::int64_t to_width) const {
    if (width == 1) return true;
    if (loops_[0].count % width != 0 || loops_[0].from != 1 || loops_[0].to != 1) return false;
    for (int i = 1; i < depth_; ++i) {
      if ((*this)[i].from % from_width != 0 || (*this)[i].to % to_width != 0) return false;
    }
    return true;
  }
  /// The same loops in units of `width` numbers.
  [[nodiscard]] constexpr Loops in_units(std::int64_t width) const {
    Loops units = *this;
    units.loops_[0].count /= width;
    units.loops_[0].from *= width;
    units.loops_[0].to *= width;
    return units;
  }

  /// Calls `body(loops, from, to)` for parts of at most `limit` items, which begin so many numbers further on.
  template <typename Body>
  constexpr void for_each_part(std::int64_t limit, const Body& body, std::int64_t from = 0, std::int64_t to = 0) const {
    const Loop& outer = (*this)[depth_ - 1];
    if (items() <= limit || outer.count == 1) {
      if (items() > 0) body(*this, from, to);
      return;
    }
    Loops low = *this;
    Loops high = *this;
    const std::int64_t half = outer.count / 2;
    low.loops_[static_cast<std::size_t>(depth_ - 1)].count = half;
    high.loops_[static_cast<std::size_t>(depth_ - 1)].count = outer.count - half;
    low.for_each_part(limit, body, from, to);
    high.for_each_part(limit, body, from + half * outer.from, to + half * outer.to);
  }

private:
  constexpr void add(const Loop& loop) {
    if (depth_ > 0) {
      if (loop.count == 1) return;
      Loop& last = loops_[static_cast<std::size_t>(depth_ - 1)];
      if (last.count == 1) {
        last = loop;
        return;
      }
      if (loop.from == last.count * last.from && loop.to == last.count * last.to) {
        last.count *= loop.count;
        return;
      }
    }
    loops_[static_cast<std::size_t>(depth_++)] = loop;
  }

  std::array<Loop, most> loops_{};
  int depth_ = 0;
};

/// Loops as a launch takes them: item i's place in both buffers.
class Nest {
public:
  struct Place {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };

  constexpr Nest() = default;
  /// Of at most most_items items.
  constexpr explicit Nest(const Loops& loops)
      : depth_(loops.depth()), items_(static_cast<std::uint32_t>(loops.items())) {
    for (int i = 0; i < depth_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      counts_[at] = Divider(static_cast<std::uint32_t>(loops[i].count));
      from_[at] = loops[i].from;
      to_[at] = loops[i].to;
    }
  }

  [[nodiscard]] constexpr std::uint32_t items() const { return items_; }
  [[nodiscard]] constexpr Place place(std::uint32_t item) const {
    Place place;
    for (std::size_t i = 0; i < Loops::most; ++i) {
      if (static_cast<int>(i) >= depth_) break;
      // Of the outermost loop nothing is left to divide.
      const std::uint32_t step = static_cast<int>(i) + 1 == depth_ ? item : counts_[i].split(item);
      place.from += from_[i] * step;
      place.to += to_[i] * step;
    }
    return place;
  }

private:
  std::array<Divider, Loops::most> counts_{};
  std::array<std::int64_t, Loops::most> from_{};
  std::array<std::int64_t, Loops::most> to_{};
  int depth_ = 0;
  std::uint32_t items_ = 0;
};

}  // namespace halograd::cuda
