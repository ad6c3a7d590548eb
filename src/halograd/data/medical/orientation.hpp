#pragma once

#include "halograd/tensor/shape.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace halograd {

/// Takes voxel indices to millimetres: rows are x (to the right), y (to the front), z (up), the last one 0 0 0 1.
using Affine = std::array<std::array<double, 4>, 4>;

/// The extent of a file's volume along its own axes i, j, k, of which i runs fastest.
using FileShape = std::array<std::int64_t, 3>;

/// How a file's axes lie in the canonical order [D,H,W] = z (feet to head), y (back to front), x (left to right of the
/// patient), which is RAS+ with x fastest.
struct Orientation {
  std::array<int, 3> axis{};       ///< the file's axis (0 to 2: i, j, k) along D, H, W
  std::array<bool, 3> reversed{};  ///< whether it runs the other way
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

/// Where canonical voxels lie in a file's array: (d, h, w) at start + d·stride.d + h·stride.h + w·stride.w.
struct CanonicalView {
  Extent extent;  ///< along D, H, W
  std::int64_t start = 0;
  Extent stride;

  [[nodiscard]] std::int64_t at(std::int64_t d, std::int64_t h, std::int64_t w) const {
    return start + d * stride.d + h * stride.h + w * stride.w;
  }
};

/// Whether the three axes of `affine` span space: lengths are finite and above 0, directions differ.
bool is_regular(const Affine& affine);

/// The one of the 48 orders and flips whose axes lie closest to those of `affine`, a regular one; oblique axes go to
/// the nearest.
Orientation orientation_of(const Affine& affine);

/// The customary name, by where i, j and k point: "RAS", "LPS", …
std::string orientation_name(const Orientation& orientation);

CanonicalView canonical_view(const FileShape& shape, const Orientation& orientation);

/// The affine of the volume resampled to W³ voxels in canonical order, from (d, h, w) to millimetres.
Affine resampled_affine(const Affine& affine, const FileShape& shape, std::int64_t width);

/// Millimetres between neighbouring voxels along each axis of `affine`.
std::array<double, 3> spacing_of(const Affine& affine);

/// Cubic millimetres of a voxel.
double voxel_volume(const Affine& affine);

/// Whether both affines put all corners of a volume at the same place, within a twentieth of a voxel.
bool same_place(const Affine& a, const Affine& b, const FileShape& shape);

/// Whether voxel indices are millimetres, as programs write that know nothing of geometry.
bool is_identity(const Affine& affine);

}  // namespace halograd
