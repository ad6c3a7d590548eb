#include "halograd/data/medical/resample.hpp"

#include "data/medical/nifti_files.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace halograd::test {
namespace {

TEST(Resample, nearest_comes_back_to_every_input_where_none_is_lost) {
  for (std::int64_t n = 1; n <= 40; ++n) {
    for (std::int64_t width = n; width <= 70; ++width) {
      for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(nearest(nearest(i, width, n), n, width), i) << n << " " << width;
      }
    }
  }
}

TEST(Resample, nearest_stays_inside) {
  EXPECT_EQ(nearest(0, 1000, 3), 166);
  EXPECT_EQ(nearest(2, 1000, 3), 833);
  EXPECT_EQ(nearest(15, 5, 16), 4);
}

TEST(Resample, taps_are_centred_on_voxels) {
  // Twice as many: centres at -1/4, 1/4, 3/4, …
  const LinearTap first = linear_tap(0, 4, 8);
  EXPECT_EQ(first.low, 0);
  EXPECT_EQ(first.weight, 0);
  const LinearTap second = linear_tap(1, 4, 8);
  EXPECT_EQ(second.low, 0);
  EXPECT_EQ(second.high, 1);
  EXPECT_DOUBLE_EQ(second.weight, 0.25);
  const LinearTap last = linear_tap(7, 4, 8);
  EXPECT_EQ(last.low, 3);
  EXPECT_EQ(last.high, 3);
  for (std::int64_t o = 0; o < 9; ++o) {
    EXPECT_EQ(linear_tap(o, 9, 9).low, o);
    EXPECT_EQ(linear_tap(o, 9, 9).weight, 0);
  }
}

TEST(Resample, a_linear_function_stays_one) {
  const Extent extent{6, 5, 8};
  const Orientation orientation{{0, 2, 1}, {true, false, true}};
  const FileShape shape = shape_of(orientation, extent);
  const CanonicalView view = canonical_view(shape, orientation);
  std::vector<double> voxels(static_cast<std::size_t>(extent.volume()));
  for (Index at{}; at.d < extent.d; ++at.d) {
    for (at.h = 0; at.h < extent.h; ++at.h) {
      for (at.w = 0; at.w < extent.w; ++at.w) {
        voxels[static_cast<std::size_t>(view.at(at.d, at.h, at.w))] =
            100 * static_cast<double>(at.d) + 10 * static_cast<double>(at.h) + static_cast<double>(at.w);
      }
    }
  }
  constexpr std::int64_t width = 11;
  std::vector<double> output(width * width * width);
  resample_linear(
      std::span<const double>(voxels), view, width, [](double value) { return value; }, std::span(output));
  const auto place = [](std::int64_t o, std::int64_t n) {
    const double at = (static_cast<double>(o) + 0.5) * static_cast<double>(n) / width - 0.5;
    return std::clamp(at, 0.0, static_cast<double>(n - 1));
  };
  for (std::int64_t i = 0; i < width * width * width; ++i) {
    const std::int64_t d = i / (width * width);
    const std::int64_t h = i / width % width;
    EXPECT_NEAR(output[static_cast<std::size_t>(i)],
                100 * place(d, extent.d) + 10 * place(h, extent.h) + place(i % width, extent.w), 1e-9);
  }
}

TEST(Resample, labels_are_never_mixed) {
  const CanonicalView view = canonical_view({4, 4, 4}, ras);
  std::vector<std::uint8_t> labels(64);
  for (std::size_t i = 0; i < 64; ++i) labels[i] = i % 4 < 2 ? 0 : 200;
  std::vector<std::uint8_t> output(7 * 7 * 7);
  resample_nearest(labels, view, 7, output);
  for (std::size_t i = 0; i < output.size(); ++i) EXPECT_EQ(output[i], i % 7 < 3 ? 0 : 200);
}

}  // namespace
}  // namespace halograd::test
