#include "halograd/data/medical/orientation.hpp"

#include "data/medical/nifti_files.hpp"

#include <gtest/gtest.h>

#include <set>

namespace halograd::test {
namespace {

constexpr Extent extent{5, 7, 9};

std::array<double, 3> millimetres(const Affine& affine, const std::array<double, 3>& index) {
  std::array<double, 3> point{};
  for (std::size_t row = 0; row < 3; ++row) {
    point[row] = affine[row][3];
    for (std::size_t axis = 0; axis < 3; ++axis) point[row] += affine[row][axis] * index[axis];
  }
  return point;
}

TEST(Orientation, all_48_are_recognised_and_named_apart) {
  std::set<std::string> names;
  for (const Orientation& orientation : all_orientations()) {
    EXPECT_EQ(orientation_of(affine_of(orientation, extent, {2, 1.5, 1})), orientation);
    names.insert(orientation_name(orientation));
  }
  EXPECT_EQ(names.size(), 48U);
}

TEST(Orientation, names_say_where_the_files_axes_point) {
  EXPECT_EQ(orientation_name(ras), "RAS");
  EXPECT_EQ(orientation_name({{2, 1, 0}, {false, true, true}}), "LPS");
  EXPECT_EQ(orientation_name({{1, 0, 2}, {true, false, true}}), "AIL");
}

TEST(Orientation, oblique_axes_go_to_the_nearest) {
  // 30 degrees about z and a little about x.
  const Affine affine = {{{0.866, -0.5, 0.05, 3}, {0.5, 0.866, -0.1, 4}, {0, 0.1, 0.99, 5}, {0, 0, 0, 1}}};
  EXPECT_EQ(orientation_of(affine), ras);
  EXPECT_TRUE(is_regular(affine));
}

TEST(Orientation, an_affine_that_spans_no_space_is_not_regular) {
  EXPECT_FALSE(is_regular(Affine{}));
  EXPECT_FALSE(is_regular({{{1, 1, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}}));
}

TEST(Orientation, the_resampled_grid_lies_where_the_file_lies) {
  for (const Orientation& orientation : all_orientations()) {
    const FileShape shape = shape_of(orientation, extent);
    const Affine file = affine_of(orientation, extent, {2, 1.5, 1});
    const CanonicalView view = canonical_view(shape, orientation);
    EXPECT_EQ(view.extent, extent);
    for (const std::int64_t width : {9, 16}) {
      const Affine grid = resampled_affine(file, shape, width);
      // The outer faces stay where they are: half a voxel beyond the first and last centres.
      for (const double end : {-0.5, static_cast<double>(width) - 0.5}) {
        const auto at = millimetres(grid, {end, end, end});
        const std::array<double, 3> corner = {30, -20, 10};
        const std::array<double, 3> spacing = {2, 1.5, 1};
        for (std::size_t d = 0; d < 3; ++d) {
          const double voxels = end < 0 ? -0.5 : static_cast<double>(extent[static_cast<int>(d)]) - 0.5;
          EXPECT_NEAR(at[2 - d], corner[d] + spacing[d] * voxels, 1e-9);
        }
      }
      EXPECT_NEAR(spacing_of(grid)[0], 2 * 5.0 / static_cast<double>(width), 1e-12);
      EXPECT_NEAR(spacing_of(grid)[2], 1 * 9.0 / static_cast<double>(width), 1e-12);
    }
  }
}

TEST(Orientation, a_voxel_has_the_room_its_axes_span) {
  EXPECT_DOUBLE_EQ(voxel_volume({{{0, -2, 0, 5}, {3, 0, 0, 6}, {0, 0, 0.5, 7}, {0, 0, 0, 1}}}), 3);
  EXPECT_DOUBLE_EQ(voxel_volume({{{2, 0, 0, 0}, {0, 3, 0, 0}, {0, 4, -0.5, 0}, {0, 0, 0, 1}}}), 3) << "oblique";
}

TEST(Orientation, places_are_compared_at_the_corners) {
  const FileShape shape = {100, 100, 100};
  const Affine a = {{{1, 0, 0, 5}, {0, 1, 0, 6}, {0, 0, 1, 7}, {0, 0, 0, 1}}};
  Affine b = a;
  b[0][3] += 0.04;
  EXPECT_TRUE(same_place(a, b, shape));
  b[0][3] += 0.04;
  EXPECT_FALSE(same_place(a, b, shape));
  b = a;
  b[0][0] = 1.001;  // a tenth of a voxel over a hundred
  EXPECT_FALSE(same_place(a, b, shape));
  EXPECT_FALSE(is_identity(a));
  EXPECT_TRUE(is_identity({{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}}));
}

}  // namespace
}  // namespace halograd::test
