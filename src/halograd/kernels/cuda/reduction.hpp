#pragma once

#include "halograd/kernels/cuda/grid.hpp"

#include <cstdint>

namespace halograd::cuda {

// Sums of two stages, in double and in an order that does not depend on the GPU: a range is cut into pieces, one a
// block; threads sum numbers that lie a stride apart, warps and blocks sum what their threads have in the order of
// reduction.cuh, and the pieces' sums, kept in scratch memory, are summed by one warp a result.

constexpr int sum_threads = 128;
constexpr int sum_warps = sum_threads / warp_size;
/// Pieces of a sum over all of its ranges: eight for each multiprocessor of the largest GPUs.
constexpr std::int64_t most_pieces = 1024;

/// Pieces of each of `ranges` ranges of `items` items, with `values` sums of each piece to keep.
constexpr std::int64_t pieces_for(std::int64_t items, std::int64_t ranges, std::int64_t values, std::int64_t capacity) {
  std::int64_t pieces = ceiling_quotient(items, sum_threads);
  const auto at_most = [&](std::int64_t limit) { pieces = pieces < limit ? pieces : limit; };
  at_most(most_pieces / ranges);
  at_most(capacity / (ranges * values));
  return pieces > 1 ? pieces : 1;
}

/// The first item of a piece; that of the next one ends it.
constexpr std::int64_t piece_begin(std::int64_t items, std::int64_t piece, std::int64_t pieces) {
  const std::int64_t longer = items % pieces;
  return items / pieces * piece + (piece < longer ? piece : longer);
}

/// term(begin + thread) + term(begin + thread + threads) + …
template <typename Term>
constexpr double strided_sum(const Term& term, std::int64_t begin, std::int64_t end, int thread, int threads) {
  double sum = 0;
  for (std::int64_t i = begin + thread; i < end; i += threads) sum += term(i);
  return sum;
}

/// Results from what pieces left: result r is the sum of terms.count(r) numbers terms(r, i).
struct PieceSums {
  const double* partial = nullptr;  ///< [ranges, pieces, values]
  std::int64_t ranges = 1;
  std::int64_t pieces = 1;
  std::int64_t values = 1;
  std::int64_t common = 0;  ///< the first of the values, which are summed over all ranges

  /// The common values, then each range's others.
  [[nodiscard]] constexpr std::int64_t results() const { return common + ranges * (values - common); }
  [[nodiscard]] constexpr std::int64_t count(std::int64_t result) const {
    return result < common ? ranges * pieces : pieces;
  }
  [[nodiscard]] constexpr double term(std::int64_t result, std::int64_t i) const {
    if (result < common) return partial[i * values + result];
    const std::int64_t own = values - common;
    const std::int64_t range = (result - common) / own;
    return partial[(range * pieces + i) * values + common + (result - common) % own];
  }
};

}  // namespace halograd::cuda
