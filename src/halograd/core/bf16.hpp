#pragma once

#include "halograd/core/types.hpp"

#include <bit>
#include <cstdint>

namespace halograd {

/// bfloat16: the upper half of a float. Sums are taken in float; a bf16 is only ever loaded and stored.
struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  /// Rounds to the nearest, ties to even; a NaN stays one.
  constexpr explicit Bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = word + 0x7FFFU + ((word >> 16) & 1U);
    const bool nan = (word & 0x7FFFFFFFU) > 0x7F800000U;
    bits = static_cast<std::uint16_t>((nan ? word | 0x400000U : rounded) >> 16);
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};
static_assert(sizeof(Bf16) == 2);

/// Calls `body` with a value of the type that activations of `type` (f32 or bf16) are kept in: a generic lambda is then
/// compiled once for each.
template <typename Body>
decltype(auto) with_activation_type(DType type, Body&& body) {
  return type == DType::bf16 ? body(Bf16{}) : body(float{});
}

}  // namespace halograd
