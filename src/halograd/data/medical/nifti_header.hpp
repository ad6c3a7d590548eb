#pragma once

#include "halograd/data/medical/orientation.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace halograd {

/// A volume's voxels in the type its file has.
using NiftiVoxels =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::int16_t>,
                 std::vector<std::uint16_t>, std::vector<std::int32_t>, std::vector<std::uint32_t>,
                 std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<float>, std::vector<double>>;

/// Where an affine comes from, best first.
enum class AffineSource : std::uint8_t { sform, qform, spacing };

/// What the header of a NIfTI-1 file says about the volume in it.
struct NiftiHeader {
  static constexpr std::size_t size = 348;

  FileShape shape{};
  Affine affine{};  ///< from (i, j, k)
  AffineSource affine_source = AffineSource::spacing;
  int datatype = 0;  ///< NIfTI's code
  double slope = 1;  ///< value = slope · stored + intercept
  double intercept = 0;
  std::int64_t data_offset = 0;
  bool swapped = false;                 ///< whether the file has the other byte order
  std::array<std::byte, size> bytes{};  ///< the header as it is, in this machine's byte order

  [[nodiscard]] std::int64_t voxels() const { return shape[0] * shape[1] * shape[2]; }
  /// What a stored number means, rounded to float.
  [[nodiscard]] double value(double stored) const {
    return static_cast<double>(static_cast<float>(slope * stored + intercept));
  }
};

/// Whether a file is called as NIfTI files are: .nii or .nii.gz.
bool has_nifti_name(const std::filesystem::path& file);

/// Reads the header of a NIfTI-1 file (`.nii`, `.nii.gz`): the affine from the sform, else the qform, else the spacing;
/// a slope of 0 or NaN is no scaling. Not collective. Throws DataError naming the file where it is missing, no NIfTI-1
/// file, has a fourth dimension, or voxels that are no real numbers (complex, RGB).
NiftiHeader read_nifti_header(const std::filesystem::path& file);

/// The header that `bytes` hold, in either byte order. `name` is what messages call it. Throws DataError likewise.
NiftiHeader parse_nifti_header(const std::array<std::byte, NiftiHeader::size>& bytes, const std::string& name);

/// A header for a volume with this affine, written as sform and, where its axes are orthogonal, as qform.
NiftiHeader make_nifti_header(const FileShape& shape, const Affine& affine);

/// An empty array of the type that NIfTI's code names, the first of the variant for one that is none of them.
NiftiVoxels voxels_of_type(int datatype);

/// The name of a file's voxel type: "INT16", "RGB24", …, or the number of one that NIfTI doesn't have.
std::string nifti_type_name(int datatype);

}  // namespace halograd
