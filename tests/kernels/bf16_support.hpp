#pragma once

#include "halograd/core/bf16.hpp"
#include "kernels/slices.hpp"

#include <algorithm>
#include <cmath>

namespace halograd::test {

inline std::vector<Bf16> to_bf16(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

inline std::vector<float> to_floats(const std::vector<Bf16>& values) {
  return {values.begin(), values.end()};
}

/// Random values that bf16 holds exactly.
inline std::vector<float> bf16_values(std::int64_t count, std::uint64_t seed, double low = -1, double high = 1) {
  return to_floats(to_bf16(random_values(count, seed, low, high)));
}

/// A slice's buffer in bf16, for the time of a call.
class Bf16Slice {
public:
  explicit Bf16Slice(const Slice& slice) : shift_(slice.shift), buffer_(to_bf16(slice.buffer)) {}
  [[nodiscard]] Bf16* data() { return buffer_.data() + shift_; }
  [[nodiscard]] std::vector<float> floats() const { return to_floats(buffer_); }

private:
  std::int64_t shift_;
  std::vector<Bf16> buffer_;
};

/// A random slice of numbers that bf16 holds exactly.
inline Slice random_bf16_slice(Dice& dice, std::int64_t samples, const Box& box, std::int64_t channels,
                               std::uint64_t seed) {
  Slice slice = random_slice(dice, samples, box, channels, seed);
  slice.buffer = to_floats(to_bf16(slice.buffer));
  return slice;
}

/// Half the distance between neighbours of bf16 around `value`, which has eight significant bits: what one rounding may
/// change, at most 2⁻⁸ of it.
inline double half_step(double value) {
  return value == 0 ? 0 : std::ldexp(1.0, std::max(std::ilogb(value), -126) - 8);
}

/// Every number of `got` is the one of `expected` rounded to bf16 once, `noise` of the largest aside (the float
/// arithmetic behind it).
inline void expect_rounded(const std::vector<float>& got, const std::vector<float>& expected, double noise) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
    ASSERT_LE(error, half_step(static_cast<double>(expected[i])) + noise * largest)
        << got[i] << " instead of " << expected[i] << " at " << i;
  }
}

}  // namespace halograd::test
