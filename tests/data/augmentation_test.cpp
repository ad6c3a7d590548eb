#include "halograd/data/augmentation.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace halograd {
namespace {

TEST(Augmentation, IsNothingByDefault) {
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    EXPECT_EQ(draw_augmentation({}, 3, sample), Augmentation{});
  }
}

TEST(Augmentation, DependsOnSeedEpochAndSampleAlone) {
  const AugmentOptions options{.flip = {true, true, true}, .scale = 0.1, .shift = 0.2, .seed = 7};
  const Augmentation one = draw_augmentation(options, 2, 5);
  EXPECT_EQ(draw_augmentation(options, 2, 5), one);
  AugmentOptions other = options;
  other.seed = 8;
  EXPECT_NE(draw_augmentation(other, 2, 5).gain, one.gain);
  EXPECT_NE(draw_augmentation(options, 3, 5).gain, one.gain);
  EXPECT_NE(draw_augmentation(options, 2, 6).gain, one.gain);
  // Each number by itself.
  const Augmentation alone = draw_augmentation({.shift = 0.2, .seed = 7}, 2, 5);
  EXPECT_EQ(alone, (Augmentation{.shift = one.shift}));
}

TEST(Augmentation, IsEvenlySpread) {
  const AugmentOptions options{.flip = {true, false, true}, .scale = 0.1, .shift = 0.2, .seed = 1};
  const int count = 4000;
  std::array<int, 8> flips{};
  double gain = 0;
  double gain_squares = 0;
  double shift = 0;
  for (int sample = 0; sample < count; ++sample) {
    const Augmentation drawn = draw_augmentation(options, sample % 4, sample);
    ++flips[(drawn.flip[0] ? 4U : 0U) + (drawn.flip[1] ? 2U : 0U) + (drawn.flip[2] ? 1U : 0U)];
    EXPECT_LE(std::abs(drawn.gain - 1), 0.1);
    EXPECT_LE(std::abs(drawn.shift), 0.2);
    gain += (drawn.gain - 1) / count;
    gain_squares += (drawn.gain - 1) * (drawn.gain - 1) / count;
    shift += drawn.shift / count;
  }
  for (const std::size_t with : {0U, 1U, 4U, 5U}) EXPECT_NEAR(flips[with], count / 4, 120);  // over four deviations
  for (const std::size_t without : {2U, 3U, 6U, 7U}) EXPECT_EQ(flips[without], 0);
  EXPECT_NEAR(gain, 0, 0.004);
  EXPECT_NEAR(gain_squares, 0.01 / 3, 0.0003);
  EXPECT_NEAR(shift, 0, 0.008);
}

TEST(Augmentation, AMirroredBoxIsCountedFromTheOtherEnd) {
  const Box box{{1, 2, 3}, {4, 6, 8}};
  const Extent volume{9, 8, 11};
  EXPECT_EQ(mirrored(box, volume, {}), box);
  EXPECT_EQ(mirrored(box, volume, {true, false, false}), (Box{{5, 2, 3}, {8, 6, 8}}));
  EXPECT_EQ(mirrored(box, volume, {false, true, true}), (Box{{1, 2, 3}, {4, 6, 8}}));
  EXPECT_EQ(mirrored({{0, 0, 0}, {1, 1, 1}}, volume, {true, true, true}), (Box{{8, 7, 10}, {9, 8, 11}}));
}

}  // namespace
}  // namespace halograd
