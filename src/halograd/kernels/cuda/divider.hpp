#pragma once

#include <cstdint>

namespace halograd::cuda {

/// Divides by a number that is fixed for a launch, with a multiplication instead of the 20 instructions of a division
/// (Granlund and Montgomery 1994, for dividends below 2³¹).
class Divider {
public:
  constexpr Divider() = default;
  constexpr explicit Divider(std::uint32_t divisor) : divisor_(divisor) {
    while ((std::uint64_t{1} << shift_) < divisor) ++shift_;
    const std::uint64_t power = std::uint64_t{1} << shift_;
    factor_ = static_cast<std::uint32_t>(((power - divisor) << 32) / divisor + 1);
  }

  [[nodiscard]] constexpr std::uint32_t divisor() const { return divisor_; }
  [[nodiscard]] constexpr std::uint32_t quotient(std::uint32_t dividend) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t{factor_} * dividend) >> 32);
    return (high + dividend) >> shift_;
  }
  /// The rest of the division; the dividend becomes the quotient.
  [[nodiscard]] constexpr std::uint32_t split(std::uint32_t& dividend) const {
    const std::uint32_t whole = quotient(dividend);
    const std::uint32_t rest = dividend - whole * divisor_;
    dividend = whole;
    return rest;
  }

private:
  std::uint32_t divisor_ = 1;
  std::uint32_t factor_ = 1;
  std::uint32_t shift_ = 0;
};

}  // namespace halograd::cuda
