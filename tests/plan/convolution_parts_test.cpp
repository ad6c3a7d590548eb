#include "halograd/plan/convolution_parts.hpp"

#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

constexpr Extent volume{64, 64, 64};
const Window same{Extent::cube(3), Extent::cube(1), Extent::cube(1)};

TEST(ConvolutionParts, TheMiddleThenSlabsWithFullExtents) {
  const Box own{{16, 0, 32}, {32, 64, 64}};
  const auto parts = convolution_parts(same, own, own, volume);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0], (Box{{17, 0, 33}, {31, 64, 64}}));  // the volume ends where it touches it
  EXPECT_EQ(parts[1], (Box{{16, 0, 32}, {17, 64, 64}}));
  EXPECT_EQ(parts[2], (Box{{31, 0, 32}, {32, 64, 64}}));
  EXPECT_EQ(parts[3], (Box{{17, 0, 32}, {31, 64, 33}}));
}

TEST(ConvolutionParts, AllAtOnceWhereNothingIsMissing) {
  const Box all = Box::whole(volume);
  EXPECT_EQ(convolution_parts(same, all, all, volume), std::vector<Box>{all});
}

TEST(ConvolutionParts, NoneWhereTheShellIsMost) {
  const Box thin{{16, 0, 0}, {19, 64, 64}};  // one plane of three
  EXPECT_TRUE(convolution_parts(same, thin, thin, volume).empty());
  const Box thick{{16, 0, 0}, {20, 64, 64}};  // two of four
  EXPECT_EQ(convolution_parts(same, thick, thick, volume).size(), 3U);
}

TEST(ConvolutionParts, NoneOfNoOutputs) {
  const Box nothing{{16, 0, 0}, {16, 64, 64}};
  EXPECT_TRUE(convolution_parts(same, nothing, nothing, volume).empty());
}

/// Outputs 8…15 of stride 2 read inputs 15…31: rank 1 of two lacks the first, which the other has, and nothing above.
TEST(ConvolutionParts, StridesLackLessOnOneSide) {
  const Window strided{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  const auto parts = convolution_parts(strided, {{8, 0, 0}, {16, 32, 32}}, {{16, 0, 0}, {32, 64, 64}}, volume);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0], (Box{{9, 0, 0}, {16, 32, 32}}));
  EXPECT_EQ(parts[1], (Box{{8, 0, 0}, {9, 32, 32}}));
}

}  // namespace
}  // namespace halograd
