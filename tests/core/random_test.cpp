#include "halograd/core/random.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>

namespace halograd {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that come with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, ElementsAreTheWordsOfOneBlockAfterTheOther) {
  const RandomStream stream{0, 0, 0};
  EXPECT_EQ(stream.bits(0), 0x6627e8d5U);
  EXPECT_EQ(stream.bits(3), 0x9b00dbd8U);
  EXPECT_EQ(stream.bits(4), philox(0, 0, 1)[0]);
  EXPECT_EQ(stream.uniform(0), static_cast<float>(0x6627e8) / 16777216.0F);
}

TEST(RandomStream, IsUniform) {
  const RandomStream stream = random_stream(42, RandomPurpose::dropout, 3, 9);
  constexpr int count = 160000;
  constexpr int bins = 16;
  std::array<int, bins> histogram{};
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(stream.uniform(i));
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++histogram[static_cast<std::size_t>(value * bins)];
    sum += value;
    squares += value * value;
  }
  // The mean of 160,000 has a standard deviation of 0.0007; a bin of 10,000 has one of 97.
  EXPECT_NEAR(sum / count, 0.5, 0.003);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.003);
  for (const int hits : histogram) EXPECT_NEAR(hits, count / bins, 450);
}

TEST(RandomStream, DoublesAreUniformToo) {
  const RandomStream stream{7, 1, 0};
  double sum = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double value = stream.uniform53(i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.004);
}

TEST(RandomStream, SeedPurposeIndexAndStepAllMatter) {
  std::set<std::uint32_t> seen;
  seen.insert(random_stream(1, RandomPurpose::dropout, 0, 0).bits(0));
  seen.insert(random_stream(2, RandomPurpose::dropout, 0, 0).bits(0));
  seen.insert(random_stream(1, RandomPurpose::shuffle, 0, 0).bits(0));
  seen.insert(random_stream(1, RandomPurpose::dropout, 1, 0).bits(0));
  seen.insert(random_stream(1, RandomPurpose::dropout, 0, 1).bits(0));
  seen.insert(random_stream(1, RandomPurpose::dropout, 0, 0).bits(1));
  EXPECT_EQ(seen.size(), 6U);
}

}  // namespace
}  // namespace halograd
