#pragma once

#include "halograd/core/parallel.hpp"

namespace halograd::cpu {

/// Work on fewer elements than this is over before a second thread has woken up.
constexpr std::int64_t serial_elements = 16384;

/// How many parts work on `elements` elements is cut into, of at most `threads`.
inline std::int64_t part_count(std::int64_t elements, std::int64_t threads) {
  return elements < serial_elements ? 1 : threads;
}

/// Calls `body(part, begin, end)` on `parts` near-equal ranges of [0, count) at once; the cut depends on `parts` alone,
/// so that each part can own scratch memory and sums come out the same run after run. `body` must not throw.
template <typename Body>
void for_each_part(std::int64_t parts, std::int64_t count, const Body& body) {
  parallel_ranges(parts, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t part = first; part < last; ++part) {
      const std::int64_t begin = count * part / parts;
      const std::int64_t end = count * (part + 1) / parts;
      if (begin < end) body(part, begin, end);
    }
  });
}

/// Bytes a vector holds.
template <typename Vector>
std::int64_t bytes_of(const Vector& vector) {
  return static_cast<std::int64_t>(vector.size() * sizeof(typename Vector::value_type));
}

}  // namespace halograd::cpu
