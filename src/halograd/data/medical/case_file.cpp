#include "halograd/data/medical/case_file.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_image.hpp"
#include "halograd/data/hdf5_write.hpp"

#include <sys/stat.h>

namespace halograd {
namespace {

void write_doubles(hid_t object, const char* name, std::initializer_list<hsize_t> shape, const double* values) {
  write_hdf5_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, shape, values);
}

void write_geometry(hid_t file, const CanonicalImage& image) {
  const NiftiHeader& original = image.original;
  const Affine affine = image.affine();
  write_doubles(file, "spacing", {3}, image.spacing().data());
  write_doubles(file, "affine", {4, 4}, affine.front().data());
  write_doubles(file, "original_affine", {4, 4}, original.affine.front().data());
  write_hdf5_attribute(file, "original_shape", H5T_STD_I64LE, H5T_NATIVE_INT64, {3}, original.shape.data());
  write_hdf5_attribute(file, "original_orientation", orientation_name(orientation_of(original.affine)));
  write_hdf5_attribute(file, "original_header", H5T_STD_U8LE, H5T_NATIVE_UINT8, {NiftiHeader::size},
                       original.bytes.data());
}

void write_source(hid_t file, const std::string& kind, const SourceFile& source) {
  const auto number = [&](const char* what, std::int64_t value) {
    write_hdf5_attribute(file, (kind + what).c_str(), H5T_STD_I64LE, H5T_NATIVE_INT64, {}, &value);
  };
  write_hdf5_attribute(file, (kind + "_file").c_str(), source.name);
  number("_size", source.size);
  number("_modified", source.modified);
}

void write_contents(hid_t file, const MedicalCase& medical_case) {
  const CanonicalImage& image = medical_case.image;
  const auto width = static_cast<hsize_t>(image.width);
  const Hdf5Handle volume =
      write_hdf5_dataset(file, "volume", H5T_STD_I16LE, H5T_NATIVE_INT16, {width, width, width}, image.voxels.data());
  write_doubles(volume.id(), "scale", {}, &image.encoding.scale);
  write_doubles(volume.id(), "offset", {}, &image.encoding.offset);
  write_hdf5_dataset(file, "segmentation", H5T_STD_U8LE, H5T_NATIVE_UINT8, {width, width, width},
                     medical_case.segmentation.data());
  write_geometry(file, image);
  const CaseSettings& settings = medical_case.settings;
  write_hdf5_attribute(file, "classes", H5T_STD_I64LE, H5T_NATIVE_INT64, {}, &settings.classes);
  write_hdf5_attribute(file, "groups", settings.groups);
  write_hdf5_attribute(file, "case", medical_case.name);
  write_source(file, "volume", medical_case.sources.volume);
  write_source(file, "segmentation", medical_case.sources.segmentation);
}

Hdf5Image make_image(const MedicalCase& medical_case, const std::filesystem::path& file) {
  const Hdf5Lock lock;
  Hdf5Image image(file);
  try {
    write_contents(image.id(), medical_case);
  } catch (const ResourceError& fault) {
    throw ResourceError("can't write {}: {}", file.string(), fault.what());
  }
  return image;
}

/// An attribute of the file's root that must be there with as many elements.
Hdf5Handle open_attribute(hid_t file, const char* name, std::int64_t elements, const std::string& path) {
  Hdf5Handle attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
  const auto refuse = [&] {
    return DataError("{}: has no attribute `{}` of {} elements; expected a case made by `convert`", path, name,
                     elements);
  };
  if (!attribute.valid()) throw refuse();
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
  if (H5Sget_simple_extent_npoints(space.id()) != elements) throw refuse();
  return attribute;
}

void read_attribute(hid_t file, const char* name, hid_t type, std::int64_t elements, void* values,
                    const std::string& path) {
  const Hdf5Handle attribute = open_attribute(file, name, elements, path);
  if (H5Aread(attribute.id(), type, values) < 0) {
    throw DataError("{}: attribute `{}` can't be read ({}); expected a case made by `convert`", path, name,
                    hdf5_reason());
  }
}

std::string read_text(hid_t file, const char* name, const std::string& path) {
  const Hdf5Handle attribute = open_attribute(file, name, 1, path);
  const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
  std::string text(H5Tget_size(type.id()), '\0');
  if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) > 0 ||
      H5Aread(attribute.id(), type.id(), text.data()) < 0) {
    throw DataError("{}: attribute `{}` is no string of fixed length; expected a case made by `convert`", path, name);
  }
  return text.substr(0, text.find('\0'));
}

SourceFile read_source(hid_t file, const std::string& kind, const std::string& path) {
  SourceFile source{.name = read_text(file, (kind + "_file").c_str(), path)};
  read_attribute(file, (kind + "_size").c_str(), H5T_NATIVE_INT64, 1, &source.size, path);
  read_attribute(file, (kind + "_modified").c_str(), H5T_NATIVE_INT64, 1, &source.modified, path);
  return source;
}

std::int64_t read_width(hid_t file, const std::string& path) {
  const Hdf5Handle volume(H5Dopen2(file, "volume", H5P_DEFAULT), H5Dclose);
  if (!volume.valid()) throw DataError("{}: has no dataset `volume`; expected a case made by `convert`", path);
  const Hdf5Handle space(H5Dget_space(volume.id()), H5Sclose);
  const std::vector<hsize_t> dims = hdf5_dims(space.id());
  if (dims.size() != 3 || dims[0] != dims[1] || dims[0] != dims[2]) {
    throw DataError("{}: `volume` is {}; expected [W,W,W]", path, hdf5_shape_text(dims));
  }
  return static_cast<std::int64_t>(dims[0]);
}

}  // namespace

SourceFile source_file(const std::filesystem::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) throw DataError("{}: no such file; expected a readable one", file.string());
  return {file.filename().string(), status.st_size, status.st_mtime};
}

void write_case_file(const MedicalCase& medical_case, const std::filesystem::path& file) {
  write_durably(file, make_image(medical_case, file).bytes(), own_temporary(file));
}

CaseGeometry read_case_geometry(const std::filesystem::path& file) {
  const Hdf5Lock lock;
  const std::string path = file.string();
  const Hdf5Handle handle = open_hdf5_file(path);
  std::array<std::byte, NiftiHeader::size> bytes{};
  CaseGeometry geometry;
  geometry.width = read_width(handle.id(), path);
  read_attribute(handle.id(), "original_header", H5T_NATIVE_UINT8, NiftiHeader::size, bytes.data(), path);
  read_attribute(handle.id(), "affine", H5T_NATIVE_DOUBLE, 16, geometry.affine.front().data(), path);
  read_attribute(handle.id(), "spacing", H5T_NATIVE_DOUBLE, 3, geometry.spacing.data(), path);
  geometry.original = parse_nifti_header(bytes, path);
  return geometry;
}

CaseSettings read_case_settings(const std::filesystem::path& file) {
  const Hdf5Lock lock;
  const std::string path = file.string();
  const Hdf5Handle handle = open_hdf5_file(path);
  CaseSettings settings;
  settings.width = read_width(handle.id(), path);
  read_attribute(handle.id(), "classes", H5T_NATIVE_INT64, 1, &settings.classes, path);
  settings.groups = read_text(handle.id(), "groups", path);
  return settings;
}

CaseSources read_case_sources(const std::filesystem::path& file) {
  const Hdf5Lock lock;
  const std::string path = file.string();
  const Hdf5Handle handle = open_hdf5_file(path);
  return {read_source(handle.id(), "volume", path), read_source(handle.id(), "segmentation", path)};
}

}  // namespace halograd
