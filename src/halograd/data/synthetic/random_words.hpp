#pragma once

#include "halograd/core/random.hpp"

namespace halograd {

/// The four words `stream.bits(4 index)` to `stream.bits(4 index + 3)`, at the price of one.
constexpr std::array<std::uint32_t, 4> random_words(const RandomStream& stream, std::uint64_t index) {
  return philox(stream.seed, (std::uint64_t{stream.purpose} << 32) | stream.step, index);
}

}  // namespace halograd
