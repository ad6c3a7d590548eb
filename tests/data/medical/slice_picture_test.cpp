#include "halograd/data/medical/slice_picture.hpp"

#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace halograd::test {
namespace {

constexpr Extent extent{8, 6, 4};

struct Volume {
  std::vector<float> image = std::vector<float>(static_cast<std::size_t>(extent.volume()));
  std::vector<std::uint8_t> labels = std::vector<std::uint8_t>(static_cast<std::size_t>(extent.volume()));

  static std::size_t at(const Index& i) { return static_cast<std::size_t>((i.d * extent.h + i.h) * extent.w + i.w); }
  [[nodiscard]] SliceView view() const {
    return {.image = image, .labels = labels, .extent = extent, .spacing = {1, 2, 4}, .low = 0, .high = 1};
  }
};

/// The middle of voxel (down, across) of a panel that begins at `left` and has `height` x `width` pixels.
Colour voxel(Picture& picture, std::int64_t left, std::int64_t width, std::int64_t across, std::int64_t n_across,
             std::int64_t height, std::int64_t down, std::int64_t n_down) {
  const std::int64_t top = (picture.height - height) / 2;
  return picture.at(left + (2 * across + 1) * width / (2 * n_across), top + (2 * down + 1) * height / (2 * n_down));
}

TEST(SlicePicture, panels_are_as_large_as_their_millimetres) {
  // 8, 12 and 16 mm; 32 pixels a millimetre make the shortest 256.
  const Volume volume;
  const Picture picture = draw_slices(volume.view());
  EXPECT_EQ(picture.width, 512 + 8 + 512 + 8 + 384);
  EXPECT_EQ(picture.height, 384);
}

TEST(SlicePicture, the_head_is_up_the_front_is_up_and_the_right_is_on_the_left) {
  Volume volume;
  // Without labels the slices cross at (4, 3, 2). One voxel of each slice is white: the highest, foremost or rightmost.
  volume.image[Volume::at({4, 5, 2})] = 1;  // in front
  volume.image[Volume::at({7, 3, 2})] = 1;  // at the top
  volume.image[Volume::at({4, 3, 3})] = 1;  // at the right
  Picture picture = draw_slices(volume.view());
  const std::int64_t coronal = 512 + 8;
  const std::int64_t sagittal = coronal + 512 + 8;
  // Axial: 6 rows down, 4 columns across. Both run from the far end.
  EXPECT_GT(voxel(picture, 0, 512, 3 - 2, 4, 384, 0, 6)[0], 240);
  EXPECT_GT(voxel(picture, 0, 512, 0, 4, 384, 5 - 3, 6)[0], 240);
  EXPECT_LT(voxel(picture, 0, 512, 3, 4, 384, 5, 6)[0], 15);
  EXPECT_GT(voxel(picture, coronal, 512, 3 - 2, 4, 256, 0, 8)[0], 240);
  EXPECT_GT(voxel(picture, coronal, 512, 0, 4, 256, 7 - 4, 8)[0], 240);
  EXPECT_GT(voxel(picture, sagittal, 384, 5 - 3, 6, 256, 0, 8)[0], 240);
  EXPECT_GT(voxel(picture, sagittal, 384, 0, 6, 256, 7 - 4, 8)[0], 240);
}

TEST(SlicePicture, slices_cross_in_the_labels_centre_of_mass) {
  Volume volume;
  EXPECT_EQ(slice_centre(volume.view()), (Index{4, 3, 2}));
  volume.labels[Volume::at({1, 1, 1})] = 1;
  volume.labels[Volume::at({3, 5, 1})] = 2;
  EXPECT_EQ(slice_centre(volume.view()), (Index{2, 3, 1}));
}

TEST(SlicePicture, labels_are_coloured_translucent_with_an_outline) {
  Volume volume;
  std::ranges::fill(volume.image, 0.5F);
  volume.labels[Volume::at({4, 3, 2})] = 1;
  Picture picture = draw_slices(volume.view());
  const Colour grey = voxel(picture, 0, 512, 0, 4, 384, 0, 6);
  EXPECT_EQ(grey, (Colour{128, 128, 128}));
  const Colour inside = voxel(picture, 0, 512, 1, 4, 384, 2, 6);
  EXPECT_GT(inside[0], 155);
  EXPECT_LT(inside[0], 230);
  EXPECT_LT(inside[2], 90);
  // The voxel's pixels are 128 to 255 across, 128 to 191 down.
  EXPECT_LT(picture.at(128, 150)[2], 10);
  EXPECT_GT(picture.at(128, 150)[0], 220);
  EXPECT_EQ(picture.at(126, 150), grey);
}

TEST(SlicePicture, no_geometry_makes_it_large) {
  struct Shown {
    Extent extent;
    std::array<double, 3> spacing;
    std::int64_t width;  ///< of the axial, coronal and sagittal panel together
    std::int64_t height;
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Shown& shown :
       {Shown{{12, 18, 20}, {1000, 1, 1}, 85 + 85 + 77, 1024}, Shown{{2000, 1, 1}, {1, 1, 1}, 1 + 1 + 1, 1024},
        Shown{{4, 4, 4}, {1e-20, 1, 1e20}, 1024 + 1024 + 1024, 1024}, Shown{{4, 4, 4}, {0, 2, 2}, 256 + 256 + 256, 256},
        Shown{{4, 4, 4}, {0, -1, nan}, 256 + 256 + 256, 256}, Shown{{4, 4, 4}, {1, 1, inf}, 1024 + 1024 + 51, 51},
        Shown{{32, 32, 32}, {2.5 / 32, 18.0 / 32, 20.0 / 32}, 1024 + 1024 + 922, 922}}) {
    const std::vector<float> image(static_cast<std::size_t>(shown.extent.volume()));
    const std::vector<std::uint8_t> labels(image.size(), 1);
    const Picture picture =
        draw_slices({.image = image, .labels = labels, .extent = shown.extent, .spacing = shown.spacing});
    EXPECT_EQ(picture.width, shown.width + 2 * 8) << shown.spacing[0];
    EXPECT_EQ(picture.height, shown.height) << shown.spacing[0];
  }
}

TEST(SlicePicture, is_written_as_png) {
  const TemporaryDirectory directory;
  const Volume volume;
  write_slice_picture(directory / "a.png", volume.view());
  const std::string bytes = read_file(directory / "a.png");
  EXPECT_TRUE(bytes.starts_with("\x89PNG\r\n\x1a\n"));
  // Width 1424 and height 384 in the header chunk.
  EXPECT_EQ(bytes.substr(16, 8), std::string("\0\0\x05\x90\0\0\x01\x80", 8));
}

}  // namespace
}  // namespace halograd::test
