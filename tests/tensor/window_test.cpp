#include "halograd/tensor/window.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

const Window same3{Extent::cube(3), Extent::cube(1), Extent::cube(1)};
const Window pool3{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
const Window pool2{Extent::cube(2), Extent::cube(2), {}};

TEST(Window, OutputExtentRoundsDown) {
  EXPECT_EQ(same3.output_extent({5, 6, 7}), (Extent{5, 6, 7}));
  EXPECT_EQ(pool3.output_extent({8, 9, 2}), (Extent{4, 5, 1}));
  EXPECT_EQ(pool2.output_extent({8, 9, 2}), (Extent{4, 4, 1}));
}

TEST(Window, HasNoOutputWhereItDoesNotFit) {
  const Window wide{Extent::cube(5), Extent::cube(2), Extent::cube(1)};
  EXPECT_EQ(wide.output_extent({2, 3, 4}), (Extent{0, 1, 1}));
}

TEST(Window, HomeIsTheInputAnOutputIsCentredOn) {
  EXPECT_EQ(same3.home(0, 4), 4);
  EXPECT_EQ(pool3.home(0, 4), 8);
  EXPECT_EQ(pool2.home(0, 4), 8);
  const Window unpadded{Extent::cube(3), Extent::cube(2), {}};
  EXPECT_EQ(unpadded.home(0, 4), 9);
}

TEST(Window, NeedsInputsInsideTheVolumeOnly) {
  // Outputs 0 … 1 of pooling 3/2/1 read inputs −1 … 3, outputs 2 … 3 inputs 3 … 7.
  const Box lower{{0, 0, 0}, {2, 4, 4}};
  const Box upper{{2, 0, 0}, {4, 4, 4}};
  const Extent input = Extent::cube(8);
  EXPECT_EQ(pool3.input_needed(lower, input), (Box{{0, 0, 0}, {4, 8, 8}}));
  EXPECT_EQ(pool3.input_needed(upper, input), (Box{{3, 0, 0}, {8, 8, 8}}));
}

}  // namespace
}  // namespace halograd
