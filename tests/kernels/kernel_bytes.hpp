#pragma once

#include <cstdint>

namespace halograd::test {

/// Bytes that one of our kernels (with the one that merges its blocks' sums) moves between a GPU and its memory, what
/// is looked at again coming from a cache, beside the fewest that the operation could.
struct KernelBytes {
  std::int64_t read = 0;
  std::int64_t written = 0;
  std::int64_t looked_at = 0;  ///< by threads, again and again where windows overlap; 0 where nobody counted
  std::int64_t least = 0;      ///< every number that goes in read once, every result written once

  [[nodiscard]] constexpr std::int64_t moved() const { return read + written; }
  [[nodiscard]] constexpr double overhead() const { return static_cast<double>(moved()) / static_cast<double>(least); }
};

}  // namespace halograd::test
