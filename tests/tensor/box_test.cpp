#include "halograd/tensor/box.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

const Box box{{1, 2, 3}, {4, 6, 8}};

TEST(Box, HasAnExtentAndAVolume) {
  EXPECT_EQ(box.extent(), (Extent{3, 4, 5}));
  EXPECT_EQ(box.volume(), 60);
  EXPECT_FALSE(box.empty());
}

TEST(Box, IsEmptyWhereOneDimensionIs) {
  const Box flat{{1, 2, 3}, {4, 2, 8}};
  const Box inverted{{3, 3, 3}, {1, 1, 1}};
  EXPECT_TRUE(flat.empty());
  EXPECT_EQ(flat.volume(), 0);
  EXPECT_EQ(inverted.volume(), 0);
}

TEST(Box, HoldsItsLowCornerButNotItsHighOne) {
  EXPECT_TRUE(box.contains(Index{1, 2, 3}));
  EXPECT_TRUE(box.contains(Index{3, 5, 7}));
  EXPECT_FALSE(box.contains(Index{4, 5, 7}));
  EXPECT_FALSE(box.contains(Index{0, 2, 3}));
}

TEST(Box, ContainsBoxesInsideIt) {
  EXPECT_TRUE(box.contains(box));
  EXPECT_TRUE(box.contains(Box{{2, 3, 4}, {3, 4, 5}}));
  EXPECT_FALSE(box.contains(Box{{2, 3, 4}, {5, 4, 5}}));
  EXPECT_TRUE(box.contains(Box{{9, 9, 9}, {9, 9, 9}}));
}

TEST(Box, IntersectsAndShifts) {
  EXPECT_EQ(box.intersect({{0, 3, 5}, {2, 9, 6}}), (Box{{1, 3, 5}, {2, 6, 6}}));
  EXPECT_TRUE(box.intersect({{4, 0, 0}, {9, 9, 9}}).empty());
  EXPECT_EQ(box.relative_to({1, 1, 1}), (Box{{0, 1, 2}, {3, 5, 7}}));
  EXPECT_EQ(Box::whole({2, 3, 4}), (Box{{0, 0, 0}, {2, 3, 4}}));
}

}  // namespace
}  // namespace halograd
