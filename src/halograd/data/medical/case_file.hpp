#pragma once

#include "halograd/data/medical/canonical_image.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace halograd {

/// What a case was made with; a set's cases should agree.
struct CaseSettings {
  std::int64_t width = 256;
  std::int64_t classes = 3;
  std::string groups;  ///< see LabelTable; "": labels are classes
  friend bool operator==(const CaseSettings&, const CaseSettings&) = default;
};

/// A file that a case was made of, as far as it takes to see whether it still is the same.
struct SourceFile {
  std::string name;
  std::int64_t size = 0;      ///< bytes
  std::int64_t modified = 0;  ///< seconds since 1970
  friend bool operator==(const SourceFile&, const SourceFile&) = default;
};

/// What is at this path now. Throws DataError where nothing is.
SourceFile source_file(const std::filesystem::path& file);

struct CaseSources {
  SourceFile volume;
  SourceFile segmentation;
  friend bool operator==(const CaseSources&, const CaseSources&) = default;
};

/// One case of a set: an image and its label map.
struct MedicalCase {
  std::string name;  ///< "12" of volume-12.nii
  CaseSources sources;
  CaseSettings settings;
  CanonicalImage image;
  std::vector<std::uint8_t> segmentation;  ///< [W,W,W], on the grid of the image
};

/// What a converted case says of the grid its voxels lie on and of the file they come from.
struct CaseGeometry {
  std::int64_t width = 0;
  NiftiHeader original;  ///< of the image it was made from; `write_label_map` takes it
  Affine affine{};       ///< from (d, h, w)
  std::array<double, 3> spacing{};
};

/// Writes a case as HDF5: `volume` [W,W,W] signed 16-bit with the attributes `scale` and `offset`, `segmentation`
/// [W,W,W] unsigned 8-bit, both contiguous; geometry and settings as attributes of the file (docs/data-formats.md). The
/// same case gives the same bytes. Until it is whole it has another name. Not collective. Throws ResourceError.
void write_case_file(const MedicalCase& medical_case, const std::filesystem::path& file);

/// Not collective. Throws DataError naming the file and what is missing or wrong.
CaseGeometry read_case_geometry(const std::filesystem::path& file);
CaseSettings read_case_settings(const std::filesystem::path& file);
CaseSources read_case_sources(const std::filesystem::path& file);

}  // namespace halograd
