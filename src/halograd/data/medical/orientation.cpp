#include "halograd/data/medical/orientation.hpp"

#include <algorithm>
#include <cmath>

namespace halograd {
namespace {

/// The world's axis (0 to 2: x, y, z) along canonical dimension 0 to 2 (D, H, W).
constexpr int world_axis(int dimension) {
  return 2 - dimension;
}

double length(const Affine& affine, int axis) {
  return std::hypot(affine[0][static_cast<std::size_t>(axis)], affine[1][static_cast<std::size_t>(axis)],
                    affine[2][static_cast<std::size_t>(axis)]);
}

/// The cosine between a file's axis and an axis of the world.
double cosine(const Affine& affine, int axis, int world) {
  return affine[static_cast<std::size_t>(world)][static_cast<std::size_t>(axis)] / length(affine, axis);
}

/// Of the columns, each an axis of the file.
double determinant(const Affine& a) {
  return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
         a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

std::array<double, 3> place(const Affine& affine, const std::array<double, 3>& index) {
  std::array<double, 3> point{};
  for (std::size_t row = 0; row < 3; ++row) {
    point[row] = affine[row][3];
    for (std::size_t axis = 0; axis < 3; ++axis) point[row] += affine[row][axis] * index[axis];
  }
  return point;
}

}  // namespace

bool is_regular(const Affine& affine) {
  for (const auto& row : affine) {
    if (!std::ranges::all_of(row, [](double value) { return std::isfinite(value); })) return false;
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (!(length(affine, axis) > 0)) return false;
  }
  return std::abs(determinant(affine)) > 1e-3 * length(affine, 0) * length(affine, 1) * length(affine, 2);
}

Orientation orientation_of(const Affine& affine) {
  std::array<int, 3> order = {0, 1, 2};
  Orientation best;
  double most = -1;
  do {
    double sum = 0;
    for (int dimension = 0; dimension < 3; ++dimension) {
      sum += std::abs(cosine(affine, order[static_cast<std::size_t>(dimension)], world_axis(dimension)));
    }
    if (sum <= most) continue;
    most = sum;
    best.axis = order;
  } while (std::ranges::next_permutation(order).found);
  for (int dimension = 0; dimension < 3; ++dimension) {
    const auto d = static_cast<std::size_t>(dimension);
    best.reversed[d] = cosine(affine, best.axis[d], world_axis(dimension)) < 0;
  }
  return best;
}

std::string orientation_name(const Orientation& orientation) {
  constexpr std::array<const char*, 3> letters = {"SI", "AP", "RL"};
  std::string name = "???";
  for (std::size_t d = 0; d < 3; ++d) {
    name[static_cast<std::size_t>(orientation.axis[d])] = letters[d][orientation.reversed[d] ? 1 : 0];
  }
  return name;
}

CanonicalView canonical_view(const FileShape& shape, const Orientation& orientation) {
  const std::array<std::int64_t, 3> strides = {1, shape[0], shape[0] * shape[1]};
  CanonicalView view;
  for (int dimension = 0; dimension < 3; ++dimension) {
    const auto axis = static_cast<std::size_t>(orientation.axis[static_cast<std::size_t>(dimension)]);
    const bool reversed = orientation.reversed[static_cast<std::size_t>(dimension)];
    view.extent[dimension] = shape[axis];
    view.stride[dimension] = reversed ? -strides[axis] : strides[axis];
    if (reversed) view.start += (shape[axis] - 1) * strides[axis];
  }
  return view;
}

Affine resampled_affine(const Affine& affine, const FileShape& shape, std::int64_t width) {
  const Orientation orientation = orientation_of(affine);
  Affine result{};
  result[3] = {0, 0, 0, 1};
  for (std::size_t row = 0; row < 3; ++row) {
    result[row][3] = affine[row][3];
    for (std::size_t d = 0; d < 3; ++d) {
      const auto axis = static_cast<std::size_t>(orientation.axis[d]);
      const auto n = static_cast<double>(shape[axis]);
      // Output o is centred on input (o + 1/2) n/W - 1/2, counted from the other end where the axis is reversed.
      const double step = n / static_cast<double>(width);
      const double first = (step - 1) / 2;
      result[row][d] = affine[row][axis] * (orientation.reversed[d] ? -step : step);
      result[row][3] += affine[row][axis] * (orientation.reversed[d] ? n - 1 - first : first);
    }
  }
  return result;
}

std::array<double, 3> spacing_of(const Affine& affine) {
  return {length(affine, 0), length(affine, 1), length(affine, 2)};
}

double voxel_volume(const Affine& affine) {
  return std::abs(determinant(affine));
}

bool same_place(const Affine& a, const Affine& b, const FileShape& shape) {
  const std::array<double, 3> spacing = spacing_of(a);
  const double tolerance = 0.05 * *std::ranges::min_element(spacing);
  for (int corner = 0; corner < 8; ++corner) {
    std::array<double, 3> index{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      index[axis] = (corner >> axis & 1) != 0 ? static_cast<double>(shape[axis] - 1) : 0;
    }
    const std::array<double, 3> at_a = place(a, index);
    const std::array<double, 3> at_b = place(b, index);
    if (!(std::hypot(at_a[0] - at_b[0], at_a[1] - at_b[1], at_a[2] - at_b[2]) <= tolerance)) return false;
  }
  return true;
}

bool is_identity(const Affine& affine) {
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      if (std::abs(affine[row][column] - (row == column ? 1 : 0)) > 1e-6) return false;
    }
  }
  return true;
}

}  // namespace halograd
