#pragma once

#include "halograd/data/medical/orientation.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace halograd::test {

/// A NIfTI-1 file written byte by byte, as the format's definition has it, without the library under test.
struct RawNifti {
  std::vector<std::int16_t> dims = {3, 4, 5};
  std::int16_t datatype = 4;  ///< int16
  std::int16_t bits = 16;
  std::vector<float> pixdim = {1, 1, 1};
  float slope = 0;
  float intercept = 0;
  std::int16_t sform_code = 0;
  Affine sform{};
  std::int16_t qform_code = 0;
  std::array<float, 6> qform{};  ///< b, c, d and offsets
  float qfac = 1;
  std::string voxels;
  bool big_endian = false;

  template <typename T>
  void set_voxels(const std::vector<T>& values) {
    voxels.clear();
    for (T value : values) append(voxels, value);
  }

  [[nodiscard]] std::string bytes() const {
    std::string text;
    append(text, std::int32_t{348});
    text.resize(40);
    append(text, static_cast<std::int16_t>(dims.size()));
    for (std::size_t i = 0; i < 7; ++i) append(text, i < dims.size() ? dims[i] : std::int16_t{1});
    text.resize(70);
    append(text, datatype);
    append(text, bits);
    text.resize(76);
    append(text, qfac);
    for (std::size_t i = 0; i < 7; ++i) append(text, i < pixdim.size() ? pixdim[i] : 0.0F);
    append(text, 352.0F);
    append(text, slope);
    append(text, intercept);
    text.resize(123);
    text.push_back(2);  // millimetres
    text.resize(252);
    append(text, qform_code);
    append(text, sform_code);
    for (const float value : qform) append(text, value);
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t column = 0; column < 4; ++column) append(text, static_cast<float>(sform[row][column]));
    }
    text.resize(344);
    text.append("n+1", 4);
    text.resize(352);
    return text + voxels;
  }

  void write(const std::filesystem::path& file) const { write_file(file, bytes()); }

private:
  template <typename T>
  void append(std::string& text, T value) const {
    std::array<char, sizeof(T)> raw;
    std::memcpy(raw.data(), &value, sizeof(T));
    if (big_endian == (std::endian::native == std::endian::little)) std::ranges::reverse(raw);
    text.append(raw.data(), raw.size());
  }
};

/// All orders and flips of three axes.
inline std::vector<Orientation> all_orientations() {
  std::vector<Orientation> list;
  std::array<int, 3> order = {0, 1, 2};
  do {
    for (int flips = 0; flips < 8; ++flips) {
      list.push_back({order, {(flips & 1) != 0, (flips & 2) != 0, (flips & 4) != 0}});
    }
  } while (std::ranges::next_permutation(order).found);
  return list;
}

/// The shape of a file whose volume has this extent along D, H and W.
inline FileShape shape_of(const Orientation& orientation, const Extent& extent) {
  FileShape shape{};
  for (int d = 0; d < 3; ++d) {
    shape[static_cast<std::size_t>(orientation.axis[static_cast<std::size_t>(d)])] = extent[d];
  }
  return shape;
}

/// The affine of a file with this orientation: `spacing` along D, H, W, and canonical voxel (0,0,0) at (10, −20, 30).
inline Affine affine_of(const Orientation& orientation, const Extent& extent, const std::array<double, 3>& spacing) {
  const std::array<double, 3> corner = {30, -20, 10};
  Affine affine{};
  affine[3][3] = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const double step = orientation.reversed[d] ? -spacing[d] : spacing[d];
    affine[2 - d][static_cast<std::size_t>(orientation.axis[d])] = step;
    affine[2 - d][3] =
        corner[d] + (orientation.reversed[d] ? spacing[d] * static_cast<double>(extent[static_cast<int>(d)] - 1) : 0);
  }
  return affine;
}

/// A file of this orientation whose voxel at canonical (d,h,w) is value(d,h,w).
template <typename T, typename Value>
RawNifti oriented(const Orientation& orientation, const Extent& extent, std::int16_t datatype, const Value& value) {
  RawNifti file;
  const FileShape shape = shape_of(orientation, extent);
  file.dims.assign(shape.begin(), shape.end());
  file.datatype = datatype;
  file.bits = static_cast<std::int16_t>(8 * sizeof(T));
  file.sform_code = 1;
  file.sform = affine_of(orientation, extent, {2, 1.5, 1});
  std::vector<T> voxels(static_cast<std::size_t>(extent.volume()));
  // Walks the file's own axes, so that it does not lean on the code under test.
  std::array<std::int64_t, 3> at{};
  for (at[2] = 0; at[2] < shape[2]; ++at[2]) {
    for (at[1] = 0; at[1] < shape[1]; ++at[1]) {
      for (at[0] = 0; at[0] < shape[0]; ++at[0]) {
        Index canonical{};
        for (int d = 0; d < 3; ++d) {
          const auto i = static_cast<std::size_t>(d);
          const std::int64_t along = at[static_cast<std::size_t>(orientation.axis[i])];
          canonical[d] = orientation.reversed[i] ? extent[d] - 1 - along : along;
        }
        voxels[static_cast<std::size_t>((at[2] * shape[1] + at[1]) * shape[0] + at[0])] = value(canonical);
      }
    }
  }
  file.set_voxels(voxels);
  return file;
}

constexpr Orientation ras{{2, 1, 0}, {false, false, false}};

}  // namespace halograd::test
