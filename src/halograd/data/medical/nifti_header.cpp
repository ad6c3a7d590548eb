#include "halograd/data/medical/nifti_header.hpp"

#include "halograd/data/medical/nifti_support.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>

namespace halograd {
namespace {

Affine affine_from(const mat44& matrix) {
  Affine affine{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      affine[row][column] = static_cast<double>(matrix.m[row][column]);
    }
  }
  affine[3] = {0, 0, 0, 1};
  return affine;
}

Affine affine_of_spacing(const nifti_image& image) {
  Affine affine{};
  const auto length = [](float spacing) {
    return std::isfinite(spacing) && spacing != 0 ? std::abs(static_cast<double>(spacing)) : 1.0;
  };
  affine[0][0] = length(image.dx);
  affine[1][1] = length(image.dy);
  affine[2][2] = length(image.dz);
  affine[3][3] = 1;
  return affine;
}

void choose_affine(const nifti_image& image, NiftiHeader& header) {
  header.affine = affine_of_spacing(image);
  header.affine_source = AffineSource::spacing;
  const auto take = [&](const mat44& matrix, AffineSource source) {
    const Affine affine = affine_from(matrix);
    if (!is_regular(affine)) return false;
    header.affine = affine;
    header.affine_source = source;
    return true;
  };
  if (image.sform_code > 0 && take(image.sto_xyz, AffineSource::sform)) return;
  if (image.qform_code > 0) take(image.qto_xyz, AffineSource::qform);
}

template <std::size_t... I>
NiftiVoxels voxels_of_code(std::size_t index, std::index_sequence<I...>) {
  NiftiVoxels voxels;
  ((I == index ? voxels.emplace<I>(), 0 : 0), ...);
  return voxels;
}

/// In the order of NiftiVoxels.
constexpr std::array<int, std::variant_size_v<NiftiVoxels>> type_codes = {
    DT_UINT8, DT_INT8, DT_INT16, DT_UINT16, DT_INT32, DT_UINT32, DT_INT64, DT_UINT64, DT_FLOAT32, DT_FLOAT64};

/// What nifti_convert_nhdr2nim would print about.
void check_raw(const nifti_1_header& raw, const std::string& name) {
  if (raw.dim[0] < 1 || raw.dim[0] > 7) {
    throw DataError("{}: its header is damaged ({} dimensions); expected 3", name, raw.dim[0]);
  }
  for (int dimension = 1; dimension <= raw.dim[0]; ++dimension) {
    const int length = raw.dim[dimension];
    if (length < 1)
      throw DataError("{}: has {} voxels along dimension {}; expected at least 1", name, length, dimension);
    if (dimension > 3 && length > 1) {
      throw DataError("{}: has {} entries along dimension {}; expected one 3D volume", name, length, dimension);
    }
  }
  if (std::ranges::find(type_codes, raw.datatype) == type_codes.end()) {
    throw DataError("{}: has voxels of type {}; expected integers, FLOAT32 or FLOAT64", name,
                    nifti_type_name(raw.datatype));
  }
}

/// `raw`: in this machine's byte order; `image`: what niftiio makes of it.
NiftiHeader header_of(const nifti_1_header& raw, const nifti_image& image) {
  static_assert(sizeof raw == NiftiHeader::size);
  NiftiHeader header;
  header.shape = {std::max(image.nx, 1), std::max(image.ny, 1), std::max(image.nz, 1)};
  choose_affine(image, header);
  header.datatype = image.datatype;
  const bool scaled = std::isfinite(image.scl_slope) && image.scl_slope != 0;
  if (scaled) {
    header.slope = static_cast<double>(image.scl_slope);
    header.intercept = std::isfinite(image.scl_inter) ? static_cast<double>(image.scl_inter) : 0;
  }
  header.data_offset = image.iname_offset;
  std::memcpy(header.bytes.data(), &raw, sizeof raw);
  return header;
}

/// Brings a header to this machine's byte order; returns whether it had the other one.
bool bring_to_order(nifti_1_header& raw, const std::string& name) {
  constexpr std::int32_t size = NiftiHeader::size;
  std::int32_t swapped_size = raw.sizeof_hdr;
  nifti_swap_4bytes(1, &swapped_size);
  const bool one_file = std::memcmp(raw.magic, "n+1", 4) == 0;
  if (!one_file || (raw.sizeof_hdr != size && swapped_size != size)) {
    throw DataError("{}: not a NIfTI-1 file (or its header is damaged); expected .nii or .nii.gz", name);
  }
  if (raw.sizeof_hdr == size) return false;
  swap_nifti_header(&raw, 1);
  return true;
}

void check_is_file(const std::filesystem::path& file) {
  std::error_code code;
  const auto status = std::filesystem::status(file, code);
  if (!std::filesystem::exists(status)) {
    throw DataError("{}: no such file; expected a NIfTI file", file.string());
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw DataError("{}: not a file; expected a NIfTI file", file.string());
  }
  if (std::filesystem::file_size(file, code) == 0) {
    throw DataError("{}: is empty; expected a NIfTI file", file.string());
  }
  if (!has_nifti_name(file)) {
    throw DataError("{}: has another name than NIfTI files have; expected .nii or .nii.gz", file.string());
  }
}

bool begins_as_gzip(const std::filesystem::path& file) {
  std::array<char, 2> magic{};
  std::ifstream(file, std::ios::binary).read(magic.data(), magic.size());
  return magic == std::array{'\x1f', '\x8b'};
}

}  // namespace

bool has_nifti_name(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".nii") || name.ends_with(".nii.gz");
}

NiftiHeader read_nifti_header(const std::filesystem::path& file) {
  silence_nifti();
  check_is_file(file);
  std::array<std::byte, NiftiHeader::size> bytes{};
  NiftiStream stream(file, "rb", file.extension() == ".gz");
  stream.read(bytes.data(), NiftiHeader::size,
              begins_as_gzip(file) ? "a whole gzip file, but its compressed data are damaged"
                                   : "a NIfTI-1 file, which begins with 348 bytes of header");
  return parse_nifti_header(bytes, file.string());
}

NiftiHeader parse_nifti_header(const std::array<std::byte, NiftiHeader::size>& bytes, const std::string& name) {
  silence_nifti();
  nifti_1_header raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  const bool swapped = bring_to_order(raw, name);
  check_raw(raw, name);
  const NiftiImage image(nifti_convert_nhdr2nim(raw, nullptr));
  if (!image) throw DataError("{}: not a NIfTI-1 file (or its header is damaged); expected .nii or .nii.gz", name);
  NiftiHeader header = header_of(raw, *image);
  header.swapped = swapped;
  return header;
}

NiftiHeader make_nifti_header(const FileShape& shape, const Affine& affine) {
  silence_nifti();
  std::array<int, 8> dims = {3, 1, 1, 1, 1, 1, 1, 1};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (shape[axis] < 1 || shape[axis] > std::numeric_limits<std::int16_t>::max()) {
      throw DataError("a volume of {} voxels along axis {}; NIfTI-1 holds 1 to 32767", shape[axis], axis + 1);
    }
    dims[axis + 1] = static_cast<int>(shape[axis]);
  }
  const NiftiImage image(nifti_make_new_nim(dims.data(), DT_INT16, 0));
  if (!image) throw ResourceError("no memory for a NIfTI header");
  const std::array<double, 3> spacing = spacing_of(affine);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      image->sto_xyz.m[row][column] = static_cast<float>(affine[row][column]);
    }
  }
  image->sform_code = NIFTI_XFORM_SCANNER_ANAT;
  image->xyz_units = NIFTI_UNITS_MM;
  image->scl_slope = 1;
  nifti_mat44_to_quatern(image->sto_xyz, &image->quatern_b, &image->quatern_c, &image->quatern_d, &image->qoffset_x,
                         &image->qoffset_y, &image->qoffset_z, nullptr, nullptr, nullptr, &image->qfac);
  for (std::size_t axis = 0; axis < 3; ++axis) image->pixdim[axis + 1] = static_cast<float>(spacing[axis]);
  image->dx = image->pixdim[1];
  image->dy = image->pixdim[2];
  image->dz = image->pixdim[3];
  image->qto_xyz =
      nifti_quatern_to_mat44(image->quatern_b, image->quatern_c, image->quatern_d, image->qoffset_x, image->qoffset_y,
                             image->qoffset_z, image->dx, image->dy, image->dz, image->qfac);
  // A qform can't shear: it is written only where it says the same.
  const bool orthogonal = same_place(affine_from(image->sto_xyz), affine_from(image->qto_xyz), shape);
  image->qform_code = orthogonal ? NIFTI_XFORM_SCANNER_ANAT : NIFTI_XFORM_UNKNOWN;
  return header_of(nifti_convert_nim2nhdr(image.get()), *image);
}

NiftiVoxels voxels_of_type(int datatype) {
  const auto at = std::ranges::find(type_codes, datatype);
  return voxels_of_code(at == type_codes.end() ? 0 : static_cast<std::size_t>(at - type_codes.begin()),
                        std::make_index_sequence<std::variant_size_v<NiftiVoxels>>());
}

std::string nifti_type_name(int datatype) {
  const std::string name = nifti_datatype_string(datatype);
  return name.starts_with('*') ? fmt::format("{} (unknown)", datatype) : name;
}

}  // namespace halograd
