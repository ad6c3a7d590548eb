#pragma once

#include "halograd/data/medical/nifti_header.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace halograd {

/// How values become 16-bit integers: value = stored · scale + offset.
struct ImageEncoding {
  double scale = 1;
  double offset = 0;

  /// The nearest stored number; values beyond the range become the range's ends.
  [[nodiscard]] std::int16_t encode(double value) const;
  friend bool operator==(const ImageEncoding&, const ImageEncoding&) = default;
};

/// The encoding for values from `lowest` to `highest`: integers as they are (scale 1, offset 0) where all are whole and
/// fit, shifted by a whole offset where they are whole and only their range fits, else the range spread over all
/// 65,536.
ImageEncoding choose_encoding(double lowest, double highest, bool whole);

/// An image as a network sees it: resampled to W³ in canonical order (see Orientation).
struct CanonicalImage {
  NiftiHeader original;  ///< of the file it comes from
  std::int64_t width = 0;
  ImageEncoding encoding;
  std::vector<std::int16_t> voxels;  ///< [W,W,W]

  [[nodiscard]] Affine affine() const { return resampled_affine(original.affine, original.shape, width); }
  /// Millimetres between voxels along D, H, W.
  [[nodiscard]] std::array<double, 3> spacing() const { return spacing_of(affine()); }
};

/// Reads an image and resamples it linearly. Takes the memory of the file's voxels, in their own type, and 2 W³ bytes.
/// Not collective. Throws DataError naming the file where it can't be read, or a value isn't finite.
CanonicalImage load_canonical_image(const std::filesystem::path& file, std::int64_t width);
/// The same where the header was read before.
CanonicalImage load_canonical_image(const std::filesystem::path& file, const NiftiHeader& header, std::int64_t width);

}  // namespace halograd
