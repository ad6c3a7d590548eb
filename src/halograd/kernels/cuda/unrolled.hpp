#pragma once

#include <type_traits>
#include <utility>

namespace halograd::cuda {

/// Calls `body` with the numbers below `count` as constants: a loop that the compiler can't leave one, so that arrays
/// which it indexes stay in registers.
template <int count, typename Body>
constexpr void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, count>{});
}

}  // namespace halograd::cuda
