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

Window transposed_window(std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                         std::int64_t output_padding = 0) {
  return {Extent::cube(kernel), Extent::cube(stride), Extent::cube(padding), Extent::cube(output_padding), true};
}

TEST(TransposedWindow, OutputExtentIsPyTorchs) {
  EXPECT_EQ(transposed_window(2, 2, 0).output_extent({5, 1, 8}), (Extent{10, 2, 16}));
  EXPECT_EQ(transposed_window(3, 2, 1).output_extent({5, 1, 8}), (Extent{9, 1, 15}));
  EXPECT_EQ(transposed_window(3, 2, 1, 1).output_extent({5, 1, 8}), (Extent{10, 2, 16}));
  EXPECT_EQ(transposed_window(3, 1, 0).output_extent({5, 1, 8}), (Extent{7, 3, 10}));
}

/// Against all pairs of an input i and a k that reach an output i·s − p + k of the box.
TEST(TransposedWindow, NeedsTheInputsThatReachTheOutputs) {
  for (std::int64_t stride = 1; stride <= 4; ++stride) {
    for (std::int64_t kernel = stride; kernel <= 5; ++kernel) {
      for (std::int64_t padding = 0; padding < kernel; ++padding) {
        const Window window = transposed_window(kernel, stride, padding, stride - 1);
        const Extent input = Extent::cube(6);
        const std::int64_t outputs = window.output_extent(input).d;
        for (std::int64_t lo = 0; lo < outputs; ++lo) {
          for (std::int64_t hi = lo + 1; hi <= outputs; ++hi) {
            std::int64_t first = input.d;
            std::int64_t end = 0;
            for (std::int64_t i = 0; i < input.d; ++i) {
              for (std::int64_t k = 0; k < kernel; ++k) {
                const std::int64_t o = i * stride - padding + k;
                if (o < lo || o >= hi) continue;
                first = std::min(first, i);
                end = std::max(end, i + 1);
              }
            }
            const Box needed = window.input_needed({{lo, lo, lo}, {hi, hi, hi}}, input);
            if (first >= end) {
              EXPECT_TRUE(needed.empty()) << kernel << stride << padding << ": " << lo << " to " << hi;
              continue;
            }
            EXPECT_EQ(needed, (Box{Extent::cube(first), Extent::cube(end)}))
                << kernel << stride << padding << ": " << lo << " to " << hi;
          }
        }
      }
    }
  }
}

TEST(TransposedWindow, NeedsNoInputForOutputsThatNoneReaches) {
  // Kernel 1, stride 3: outputs 0, 3, 6 have an input, those in between none.
  const Window window = transposed_window(1, 3, 0);
  EXPECT_TRUE(window.input_needed({{1, 1, 1}, {3, 3, 3}}, Extent::cube(3)).empty());
  EXPECT_EQ(window.input_needed({{1, 1, 1}, {4, 4, 4}}, Extent::cube(3)), (Box{{1, 1, 1}, {2, 2, 2}}));
}

}  // namespace
}  // namespace halograd
