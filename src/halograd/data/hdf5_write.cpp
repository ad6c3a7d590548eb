#include "halograd/data/hdf5_write.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>

namespace halograd {
namespace {

Hdf5Handle made(hid_t id, Hdf5Handle::Close close) {
  if (id < 0) throw ResourceError("HDF5 refused to make an object ({})", hdf5_reason());
  return {id, close};
}

void check(herr_t status, const char* name) {
  if (status < 0) throw ResourceError("making `{}` failed ({}); is the memory full?", name, hdf5_reason());
}

Hdf5Handle make_space(std::initializer_list<hsize_t> shape) {
  if (shape.size() == 0) return made(H5Screate(H5S_SCALAR), H5Sclose);
  return made(H5Screate_simple(static_cast<int>(shape.size()), shape.begin(), nullptr), H5Sclose);
}

}  // namespace

Hdf5Handle write_hdf5_dataset(hid_t file, const char* name, hid_t file_type, hid_t memory_type,
                              std::initializer_list<hsize_t> shape, const void* values) {
  const Hdf5Handle space = make_space(shape);
  const Hdf5Handle properties = made(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_layout(properties.id(), H5D_CONTIGUOUS), name);
  check(H5Pset_fill_time(properties.id(), H5D_FILL_TIME_NEVER), name);
  check(H5Pset_obj_track_times(properties.id(), false), name);
  Hdf5Handle dataset =
      made(H5Dcreate2(file, name, file_type, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), H5Dclose);
  check(H5Dwrite(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), name);
  return dataset;
}

void write_hdf5_attribute(hid_t object, const char* name, hid_t file_type, hid_t memory_type,
                          std::initializer_list<hsize_t> shape, const void* values) {
  const Hdf5Handle space = make_space(shape);
  const Hdf5Handle attribute =
      made(H5Acreate2(object, name, file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(H5Awrite(attribute.id(), memory_type, values), name);
}

void write_hdf5_attribute(hid_t object, const char* name, const std::string& text) {
  const Hdf5Handle type = made(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type.id(), std::max<std::size_t>(text.size(), 1)), name);
  check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), name);
  write_hdf5_attribute(object, name, type.id(), type.id(), {}, text.c_str());
}

}  // namespace halograd
