#include "halograd/tensor/partition.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <random>

namespace halograd {
namespace {

const Window same3{Extent::cube(3), Extent::cube(1), Extent::cube(1)};
const Window pool3{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
const Window pool2{Extent::cube(2), Extent::cube(2), {}};

/// A partition cut in depth alone.
Partition cut_depth(std::vector<std::int64_t> cuts) {
  return Partition({std::move(cuts), std::vector<std::int64_t>{0, 4}, {0, 4}});
}

std::vector<std::int64_t> depth_cuts(const Partition& partition) {
  std::vector<std::int64_t> cuts{0};
  for (std::int64_t i = 0; i < partition.parts().d; ++i) cuts.push_back(partition.box({i, 0, 0}).hi.d);
  return cuts;
}

std::vector<std::int64_t> even_depth(std::int64_t extent, std::int64_t parts, std::int64_t alignment = 1) {
  return depth_cuts(Partition::even({extent, 1, 1}, {parts, 1, 1}, {alignment, 1, 1}));
}

using Cuts = std::vector<std::int64_t>;

TEST(PartitionEven, GivesTheFirstPartsOneMore) {
  EXPECT_EQ(even_depth(10, 3), (Cuts{0, 4, 7, 10}));
  EXPECT_EQ(even_depth(12, 3), (Cuts{0, 4, 8, 12}));
  EXPECT_EQ(even_depth(5, 5), (Cuts{0, 1, 2, 3, 4, 5}));
}

TEST(PartitionEven, CutsAtMultiplesOfTheAlignmentWhereThatIsBalanced) {
  EXPECT_EQ(even_depth(128, 2, 64), (Cuts{0, 64, 128}));
  EXPECT_EQ(even_depth(128, 4, 64), (Cuts{0, 32, 64, 96, 128}));
  // Units of 2 would leave a part of 6 against a mean of 5.
  EXPECT_EQ(even_depth(10, 2, 4), (Cuts{0, 5, 10}));
  // 44 is within a tenth of 128/3 = 42.7, 48 is not.
  EXPECT_EQ(even_depth(128, 3, 64), (Cuts{0, 44, 88, 128}));
}

TEST(PartitionEven, RefusesMorePartsThanVoxels) {
  EXPECT_THROW(Partition::even({4, 4, 2}, {1, 1, 3}), UsageError);
}

TEST(Partition, KnowsItsPartsAndBoxes) {
  const Partition partition({Cuts{0, 3, 8}, Cuts{0, 5}, Cuts{0, 1, 2, 6}});
  EXPECT_EQ(partition.parts(), (Extent{2, 1, 3}));
  EXPECT_EQ(partition.extent(), (Extent{8, 5, 6}));
  EXPECT_EQ(partition.box({1, 0, 2}), (Box{{3, 0, 2}, {8, 5, 6}}));
  EXPECT_EQ(partition.name(), "2x1x3");
  EXPECT_EQ(Partition::whole({8, 5, 6}).box({0, 0, 0}), Box::whole({8, 5, 6}));
}

TEST(PartitionDerive, KeepsTheCutsOfAStrideOneWindow) {
  EXPECT_EQ(cut_depth({0, 3, 8}).derive(same3), cut_depth({0, 3, 8}));
}

TEST(PartitionDerive, PutsPooledVoxelsWhereTheirCentreIs) {
  // Pooling 3/2/1: output j is centred on input 2j. A cut at 4 leaves outputs 0, 1 below it, one at 3 does too (0, 2 <
  // 3).
  EXPECT_EQ(depth_cuts(cut_depth({0, 4, 8}).derive(pool3)), (Cuts{0, 2, 4}));
  EXPECT_EQ(depth_cuts(cut_depth({0, 3, 8}).derive(pool3)), (Cuts{0, 2, 4}));
  EXPECT_EQ(depth_cuts(cut_depth({0, 5, 8}).derive(pool3)), (Cuts{0, 3, 4}));
  // Pooling 2/2/0 over 9 voxels makes 4; the last input belongs to no output.
  EXPECT_EQ(depth_cuts(cut_depth({0, 5, 9}).derive(pool2)), (Cuts{0, 3, 4}));
  EXPECT_EQ(depth_cuts(cut_depth({0, 8, 9}).derive(pool2)), (Cuts{0, 4, 4}));
}

Halo depth_halo(const Partition& input, const Window& window, std::int64_t part) {
  return halo_of(input, input.derive(window), window, {part, 0, 0});
}

TEST(HaloOf, PoolingNeedsALowVoxelAfterAnEvenCutAndAHighOneBeforeAnOddCut) {
  const Partition even = cut_depth({0, 4, 8});
  EXPECT_EQ(depth_halo(even, pool3, 0), (Halo{}));
  EXPECT_EQ(depth_halo(even, pool3, 1), (Halo{{1, 0, 0}, {}}));
  const Partition odd = cut_depth({0, 3, 8});
  EXPECT_EQ(depth_halo(odd, pool3, 0), (Halo{{}, {1, 0, 0}}));
  EXPECT_EQ(depth_halo(odd, pool3, 1), (Halo{}));
}

TEST(HaloOf, PoolingByTwoNeedsOneVoxelAtOddCutsOnly) {
  EXPECT_EQ(depth_halo(cut_depth({0, 4, 9}), pool2, 0), (Halo{}));
  EXPECT_EQ(depth_halo(cut_depth({0, 4, 9}), pool2, 1), (Halo{}));
  EXPECT_EQ(depth_halo(cut_depth({0, 5, 9}), pool2, 0), (Halo{{}, {1, 0, 0}}));
  EXPECT_EQ(depth_halo(cut_depth({0, 5, 9}), pool2, 1), (Halo{}));
}

TEST(HaloOf, ConvolutionNeedsHalfItsKernelOnInnerSides) {
  const Partition input = cut_depth({0, 3, 6, 9});
  const Window wide{Extent::cube(5), Extent::cube(1), Extent::cube(2)};
  EXPECT_EQ(depth_halo(input, same3, 0), (Halo{{}, {1, 0, 0}}));
  EXPECT_EQ(depth_halo(input, same3, 1), (Halo{{1, 0, 0}, {1, 0, 0}}));
  EXPECT_EQ(depth_halo(input, wide, 2), (Halo{{2, 0, 0}, {}}));
}

TEST(HalosFit, UnlessAHaloIsThickerThanTheNeighbour) {
  const Window wide{Extent::cube(5), Extent::cube(1), Extent::cube(2)};
  const auto fits = [](const Partition& input, const Window& window) {
    return halos_fit(input, input.derive(window), window);
  };
  EXPECT_TRUE(fits(cut_depth({0, 2, 4, 6}), wide));
  EXPECT_FALSE(fits(cut_depth({0, 3, 4, 7}), wide));  // parts 0 and 2 read two voxels of part 1, which has one
  EXPECT_TRUE(fits(cut_depth({0, 3, 4, 7}), same3));
  EXPECT_FALSE(fits(cut_depth({0, 8, 9}), pool2));  // the upper part owns no output
}

TEST(PartitionCoarsen, JoinsNeighbours) {
  EXPECT_EQ(cut_depth({0, 4, 7, 10, 12}).coarsen({2, 1, 1}), cut_depth({0, 7, 12}));
  EXPECT_EQ(cut_depth({0, 4, 7, 10, 12}).coarsen({1, 1, 1}), cut_depth({0, 12}));
}

Window transposed_window(std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                         std::int64_t output_padding = 0) {
  return {{kernel, 1, 1}, {stride, 1, 1}, {padding, 0, 0}, {output_padding, 0, 0}, true};
}

TEST(PartitionDerive, OfATransposedWindowCutsAtMultiplesOfTheStride) {
  const Partition input = cut_depth({0, 3, 4, 8});
  EXPECT_EQ(depth_cuts(input.derive(transposed_window(2, 2, 0))), (Cuts{0, 6, 8, 16}));
  EXPECT_EQ(depth_cuts(input.derive(transposed_window(3, 2, 1, 1))), (Cuts{0, 6, 8, 16}));
  EXPECT_EQ(depth_cuts(input.derive(transposed_window(3, 2, 1))), (Cuts{0, 6, 8, 15}));
  EXPECT_EQ(depth_cuts(input.derive(transposed_window(5, 2, 0))), (Cuts{0, 6, 8, 19}));
}

TEST(HaloOf, TransposedWindowsReadWhatReachesAcrossTheCut) {
  const Partition input = cut_depth({0, 3, 8});
  EXPECT_EQ(depth_halo(input, transposed_window(2, 2, 0), 0), (Halo{}));
  EXPECT_EQ(depth_halo(input, transposed_window(2, 2, 0), 1), (Halo{}));
  // Kernel 3, stride 2, padding 1: output 5 gets input 3's first tap; output 6 is input 3's second alone.
  EXPECT_EQ(depth_halo(input, transposed_window(3, 2, 1, 1), 0), (Halo{{}, {1, 0, 0}}));
  EXPECT_EQ(depth_halo(input, transposed_window(3, 2, 1, 1), 1), (Halo{}));
  // Linear upsampling by 2 reads a voxel on either side.
  EXPECT_EQ(depth_halo(input, transposed_window(4, 2, 1), 0), (Halo{{}, {1, 0, 0}}));
  EXPECT_EQ(depth_halo(input, transposed_window(4, 2, 1), 1), (Halo{{1, 0, 0}, {}}));
}

TEST(HalosFit, OfTransposedWindowsUnlessOneReachesFurtherThanTheNeighbour) {
  const auto fits = [](const Partition& input, const Window& window) {
    return halos_fit(input, input.derive(window), window);
  };
  EXPECT_TRUE(fits(cut_depth({0, 1, 2, 3}), transposed_window(2, 2, 0)));
  EXPECT_TRUE(fits(cut_depth({0, 1, 2, 3}), transposed_window(4, 2, 1)));
  EXPECT_TRUE(fits(cut_depth({0, 2, 4, 6}), transposed_window(8, 2, 3)));
  EXPECT_FALSE(
      fits(cut_depth({0, 3, 4, 7}), transposed_window(8, 2, 3)));  // reaches two voxels of part 1, which has one
}

/// Random cuts and windows: each output has one owner, and own voxels and halo cover exactly what it reads.
TEST(PartitionDerive, CoversEveryOutputOnceAndHalosCoverWhatIsRead) {
  std::mt19937 engine(1);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 500; ++round) {
    Window window;
    window.kernel.d = between(1, 5);
    window.stride.d = between(1, 3);
    window.padding.d = between(0, window.kernel.d / 2);
    Cuts cuts{0};
    for (std::int64_t i = between(1, 4); i > 0; --i) cuts.push_back(cuts.back() + between(1, 9));
    const Partition input({cuts, Cuts{0, 1}, Cuts{0, 1}});
    const Partition output = input.derive(window);
    const std::int64_t extent = cuts.back();
    ASSERT_EQ(output.extent(), window.output_extent(input.extent()));
    if (output.extent().d < 1) continue;
    std::vector<int> owners(static_cast<std::size_t>(output.extent().d));
    for (std::int64_t part = 0; part < input.parts().d; ++part) {
      const Box own = input.box({part, 0, 0});
      const Box outputs = output.box({part, 0, 0});
      const Halo halo = halo_of(input, output, window, {part, 0, 0});
      for (std::int64_t o = outputs.lo.d; o < outputs.hi.d; ++o) {
        ++owners[static_cast<std::size_t>(o)];
        for (std::int64_t k = 0; k < window.kernel.d; ++k) {
          const std::int64_t i = o * window.stride.d - window.padding.d + k;
          if (i < 0 || i >= extent) continue;
          EXPECT_GE(i, own.lo.d - halo.lo.d);
          EXPECT_LT(i, own.hi.d + halo.hi.d);
        }
      }
    }
    for (const int count : owners) EXPECT_EQ(count, 1);
  }
}

/// Likewise transposed: an output's owner holds every input that reaches it, itself or in its halo.
TEST(PartitionDerive, OfTransposedWindowsCoversEveryOutputOnceAndHalosCoverWhatReachesThem) {
  std::mt19937 engine(2);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 500; ++round) {
    const std::int64_t stride = between(1, 3);
    const std::int64_t kernel = between(1, 5);
    const Window window = transposed_window(kernel, stride, between(0, (kernel - 1) / 2), between(0, stride - 1));
    Cuts cuts{0};
    for (std::int64_t i = between(1, 4); i > 0; --i) cuts.push_back(cuts.back() + between(1, 9));
    const Partition input({cuts, Cuts{0, 1}, Cuts{0, 1}});
    const Partition output = input.derive(window);
    ASSERT_EQ(output.extent(), window.output_extent(input.extent()));
    std::vector<int> owners(static_cast<std::size_t>(output.extent().d));
    for (std::int64_t part = 0; part < input.parts().d; ++part) {
      const Box own = input.box({part, 0, 0});
      const Box outputs = output.box({part, 0, 0});
      const Halo halo = halo_of(input, output, window, {part, 0, 0});
      for (std::int64_t o = outputs.lo.d; o < outputs.hi.d; ++o) ++owners[static_cast<std::size_t>(o)];
      for (std::int64_t i = 0; i < cuts.back(); ++i) {
        for (std::int64_t k = 0; k < kernel; ++k) {
          const std::int64_t o = i * stride - window.padding.d + k;
          if (o < outputs.lo.d || o >= outputs.hi.d) continue;
          EXPECT_GE(i, own.lo.d - halo.lo.d);
          EXPECT_LT(i, own.hi.d + halo.hi.d);
        }
      }
    }
    for (const int count : owners) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace halograd
