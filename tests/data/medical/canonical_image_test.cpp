#include "halograd/data/medical/canonical_image.hpp"

#include "data/medical/nifti_files.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace halograd::test {
namespace {

constexpr Extent extent{5, 7, 9};

std::int64_t number(const Index& at) {
  return (at.d * 7 + at.h) * 9 + at.w;
}

TEST(CanonicalImage, integers_stay_what_they_are) {
  EXPECT_EQ(choose_encoding(-1024, 3071, true), (ImageEncoding{1, 0}));
  EXPECT_EQ(choose_encoding(-32768, 32767, true), (ImageEncoding{1, 0}));
  EXPECT_EQ(choose_encoding(0, 65535, true), (ImageEncoding{1, 32768})) << "shifted, exactly";
}

TEST(CanonicalImage, fractions_and_wide_ranges_use_all_16_bits) {
  for (const auto& [low, high] : {std::array{0.0, 1.0}, {-0.25, 1000.0}, {0.0, 4e9}, {1e-9, 3e-9}}) {
    const ImageEncoding encoding = choose_encoding(low, high, false);
    EXPECT_EQ(encoding.encode(low), -32768);
    EXPECT_EQ(encoding.encode(high), 32767);
    for (const double part : {0.0, 0.1, 0.5, 0.77, 1.0}) {
      const double value = low + part * (high - low);
      const double back = encoding.encode(value) * encoding.scale + encoding.offset;
      EXPECT_LE(std::abs(back - value), (high - low) / 65535 * 0.501) << low << " " << high;
    }
  }
  EXPECT_EQ(choose_encoding(0, 65536, true).encode(65536), 32767);
}

TEST(CanonicalImage, one_value_everywhere_is_kept) {
  const ImageEncoding encoding = choose_encoding(0.3, 0.3, false);
  EXPECT_EQ(encoding.encode(0.3) * encoding.scale + encoding.offset, 0.3);
}

TEST(CanonicalImage, is_the_same_for_every_order_of_the_files_axes) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "a.nii";
  const auto value = [](const Index& at) { return static_cast<std::int16_t>(number(at) * 17 % 1000 - 300); };
  for (const std::int64_t width : {7, 16}) {
    oriented<std::int16_t>(ras, extent, 4, value).write(file);
    const CanonicalImage right = load_canonical_image(file, width);
    EXPECT_EQ(right.encoding, (ImageEncoding{1, 0}));
    for (const Orientation& orientation : all_orientations()) {
      oriented<std::int16_t>(orientation, extent, 4, value).write(file);
      const CanonicalImage image = load_canonical_image(file, width);
      EXPECT_EQ(image.voxels, right.voxels) << orientation_name(orientation);
      for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_NEAR(image.affine()[i / 4][i % 4], right.affine()[i / 4][i % 4], 1e-9);
      }
      EXPECT_DOUBLE_EQ(image.spacing()[1], 1.5 * 7 / static_cast<double>(width));
    }
  }
}

TEST(CanonicalImage, keeps_voxels_where_nothing_is_resampled) {
  const TemporaryDirectory directory;
  const Extent cube = Extent::cube(6);
  const auto value = [](const Index& at) { return static_cast<std::int16_t>(100 * at.d + 10 * at.h + at.w); };
  oriented<std::int16_t>({{0, 2, 1}, {true, true, false}}, cube, 4, value).write(directory / "a.nii");
  const CanonicalImage image = load_canonical_image(directory / "a.nii", 6);
  for (std::int64_t i = 0; i < 216; ++i) {
    EXPECT_EQ(image.voxels[static_cast<std::size_t>(i)], 100 * (i / 36) + 10 * (i / 6 % 6) + i % 6);
  }
}

TEST(CanonicalImage, slope_and_intercept_lose_nothing) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "a.nii";
  const Extent cube = Extent::cube(4);
  RawNifti raw = oriented<std::uint16_t>(ras, cube, 512, [](const Index& at) {
    return static_cast<std::uint16_t>(4096 * at.d + 1024 * at.h + 341 * at.w);
  });
  const auto value = [&](const CanonicalImage& image, std::size_t i) {
    return static_cast<double>(image.voxels[i]) * image.encoding.scale + image.encoding.offset;
  };
  raw.slope = 1;
  raw.intercept = -1024;
  raw.write(file);
  EXPECT_EQ(load_canonical_image(file, 4).encoding, (ImageEncoding{1, 0}));
  EXPECT_EQ(load_canonical_image(file, 4).voxels.front(), -1024);
  raw.slope = 0.01F;
  raw.intercept = 0.5F;
  raw.write(file);
  const CanonicalImage image = load_canonical_image(file, 4);
  for (std::size_t i = 0; i < 64; ++i) {
    const double stored = static_cast<double>(4096 * (i / 16) + 1024 * (i / 4 % 4) + 341 * (i % 4));
    EXPECT_NEAR(value(image, i), 0.01 * stored + 0.5, image.encoding.scale * 0.51);
  }
  EXPECT_LT(image.encoding.scale, 0.0027);
  raw.slope = 1e36F;
  raw.write(file);
  EXPECT_NE(message_of<DataError>([&] { load_canonical_image(file, 4); }).find("not finite"), std::string::npos);
}

TEST(CanonicalImage, values_beyond_float_are_refused) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "a.nii";
  oriented<double>(ras, Extent::cube(4), 64, [](const Index& at) { return at.w == 1 ? 1e300 : 0; }).write(file);
  EXPECT_EQ(message_of<DataError>([&] { load_canonical_image(file, 4); }),
            file.string() + ": a voxel's value does not fit a 32-bit float; expected values to 3.4e+38");
}

}  // namespace
}  // namespace halograd::test
