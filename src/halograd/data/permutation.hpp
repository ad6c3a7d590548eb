#pragma once

#include "halograd/core/random.hpp"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace halograd {

/// 0 … count − 1 in an order drawn from `stream` alone (Fisher–Yates), the same on every rank and processor.
inline std::vector<std::int64_t> permutation(std::int64_t count, const RandomStream& stream) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = count - 1; i > 0; --i) {
    const double drawn = stream.uniform53(static_cast<std::uint64_t>(i)) * static_cast<double>(i + 1);
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(drawn)]);
  }
  return order;
}

}  // namespace halograd
