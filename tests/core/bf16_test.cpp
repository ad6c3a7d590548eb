#include "halograd/core/bf16.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace halograd {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float of_word(std::uint32_t word) {
  return std::bit_cast<float>(word);
}

Bf16 of_bits(std::uint32_t bits) {
  Bf16 value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

/// By arithmetic: eight significant bits, fewer below 2⁻¹²⁶, and beyond the largest number infinity.
double nearest(float value) {
  if (value == 0 || std::isinf(value)) return static_cast<double>(value);
  const double step = std::ldexp(1.0, std::max(std::ilogb(value), -126) - 7);
  const double rounded = std::nearbyint(static_cast<double>(value) / step) * step;
  return std::abs(rounded) < 0x1p128 ? rounded : std::copysign(static_cast<double>(infinity), rounded);
}

TEST(Bf16, EveryValueIsTheUpperHalfOfAFloatAndComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = static_cast<float>(of_bits(bits));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), bits << 16);
    const bool quiet = !std::isnan(value) || (bits & 0x40U) != 0;
    ASSERT_EQ(Bf16(value).bits, quiet ? bits : bits | 0x40U) << bits;
    ASSERT_EQ(std::isnan(static_cast<float>(Bf16(value))), std::isnan(value)) << bits;
  }
}

/// Between every two neighbours, denormals and the largest number and infinity among them.
TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (const std::uint32_t low : {0x0001U, 0x1234U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      const float value = of_word(bits << 16 | low);
      if (std::isnan(value)) continue;
      const Bf16 rounded(value);
      ASSERT_EQ(static_cast<double>(static_cast<float>(rounded)), nearest(value)) << value;
      ASSERT_EQ(std::signbit(static_cast<float>(rounded)), std::signbit(value)) << value;
      if (low == 0x8000U) {
        ASSERT_EQ(rounded.bits & 1U, 0U) << value;
      }
    }
  }
}

TEST(Bf16, OverflowsToInfinity) {
  const float largest = static_cast<float>(of_bits(0x7F7F));
  EXPECT_EQ(static_cast<float>(Bf16(largest)), largest);
  EXPECT_EQ(Bf16(of_word(0x7F7F7FFF)).bits, 0x7F7F);
  EXPECT_EQ(static_cast<float>(Bf16(of_word(0x7F7F8000))), infinity);
  EXPECT_EQ(static_cast<float>(Bf16(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(static_cast<float>(Bf16(std::numeric_limits<float>::lowest())), -infinity);
  EXPECT_EQ(static_cast<float>(Bf16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(Bf16(-infinity)), -infinity);
}

/// Also where all that makes it one stands in the lower half, or the rounding would carry into the sign.
TEST(Bf16, NaNStaysNaN) {
  for (std::uint32_t bits = 0x7F80; bits < 0x8000; ++bits) {
    for (const std::uint32_t low : {0x0001U, 0x7FFFU, 0x8000U, 0xFFFFU}) {
      for (const std::uint32_t sign : {0U, 0x8000U}) {
        const float rounded = static_cast<float>(Bf16(of_word((bits | sign) << 16 | low)));
        ASSERT_TRUE(std::isnan(rounded)) << bits << " " << low;
        ASSERT_EQ(std::signbit(rounded), sign != 0);
      }
    }
  }
}

TEST(Bf16, KeepsDenormals) {
  EXPECT_EQ(Bf16(0x1p-133F).bits, 1);
  EXPECT_EQ(Bf16(0x1p-134F).bits, 0);
  EXPECT_EQ(Bf16(0x1.0002p-134F).bits, 1);
  EXPECT_EQ(Bf16(0x1.8p-133F).bits, 2);
  EXPECT_EQ(Bf16(-0.0F).bits, 0x8000);
  EXPECT_EQ(Bf16(-0x1p-140F).bits, 0x8000);
}

TEST(Bf16, IsAConstant) {
  static_assert(Bf16(1.0F).bits == 0x3F80);
  static_assert(static_cast<float>(Bf16(0x1.01p0F)) == 1.0F);
  static_assert(static_cast<float>(Bf16(0x1.03p0F)) == 0x1.04p0F);
}

TEST(Bf16, IsWhatActivationsOfItsTypeAreKeptIn) {
  EXPECT_TRUE(with_activation_type(DType::bf16, []<typename T>(T) { return std::is_same_v<T, Bf16>; }));
  EXPECT_TRUE(with_activation_type(DType::f32, []<typename T>(T) { return std::is_same_v<T, float>; }));
}

}  // namespace
}  // namespace halograd
