#include "halograd/data/synthetic/universe_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <span>
#include <string>
#include <system_error>

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_image.hpp"

namespace halograd {
namespace {

Hdf5Handle made(hid_t id, Hdf5Handle::Close close) {
  if (id < 0) throw ResourceError("HDF5 refused to make an object ({})", hdf5_reason());
  return {id, close};
}

void check(herr_t status, const char* name) {
  if (status < 0) throw ResourceError("making `{}` failed ({}); is the memory full?", name, hdf5_reason());
}

void write_dataset(hid_t file, const char* name, hid_t file_type, hid_t memory_type, std::span<const hsize_t> shape,
                   const void* values) {
  const Hdf5Handle space = made(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
  const Hdf5Handle properties = made(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_layout(properties.id(), H5D_CONTIGUOUS), name);
  check(H5Pset_fill_time(properties.id(), H5D_FILL_TIME_NEVER), name);
  // A time stamp would make two runs' bytes differ.
  check(H5Pset_obj_track_times(properties.id(), false), name);
  const Hdf5Handle dataset =
      made(H5Dcreate2(file, name, file_type, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), H5Dclose);
  check(H5Dwrite(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), name);
}

void write_floats(hid_t file, const char* name, const std::array<float, 4>& values) {
  const std::array<hsize_t, 1> shape = {4};
  write_dataset(file, name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, shape, values.data());
}

void write_names(hid_t file) {
  constexpr std::size_t length = 8;
  std::array<std::array<char, length>, 4> text{};
  for (std::size_t i = 0; i < 4; ++i) std::string(cosmology_names[i]).copy(text[i].data(), length - 1);
  const Hdf5Handle type = made(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type.id(), length), "namePar");
  check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "namePar");
  const std::array<hsize_t, 1> shape = {4};
  write_dataset(file, "namePar", type.id(), type.id(), shape, text.data());
}

void write_attribute(hid_t file, const char* name, hid_t file_type, hid_t memory_type, const void* value) {
  const Hdf5Handle space = made(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute = made(H5Acreate2(file, name, file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(H5Awrite(attribute.id(), memory_type, value), name);
}

void write_contents(hid_t file, const Universe& universe) {
  const UniverseOptions& options = universe.options;
  const auto width = static_cast<hsize_t>(options.width);
  const std::array<hsize_t, 4> shape = {width, width, width, 4};
  write_dataset(file, "full", H5T_STD_U16LE, H5T_NATIVE_UINT16, shape, universe.counts.data());
  write_floats(file, "unitPar", universe.unit_parameters);
  const Cosmology& cosmology = universe.cosmology;
  write_floats(file, "physPar",
               {static_cast<float>(cosmology.omega_m), static_cast<float>(cosmology.sigma8),
                static_cast<float>(cosmology.spectral_index), static_cast<float>(cosmology.hubble)});
  write_floats(file, "redshifts", options.redshifts);
  write_names(file);
  const double box = options.box_size();
  write_attribute(file, "box_mpc_h", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &box);
  write_attribute(file, "seed", H5T_STD_U64LE, H5T_NATIVE_UINT64, &options.seed);
  write_attribute(file, "index", H5T_STD_I64LE, H5T_NATIVE_INT64, &universe.index);
  write_attribute(file, "particles_per_voxel", H5T_STD_I64LE, H5T_NATIVE_INT64, &options.particles_per_voxel);
}

/// What is certain to fail is said before a large image is made.
void check_place(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  if (access((directory / ".").c_str(), W_OK | X_OK) != 0) {
    throw DataError("can't write {}: its directory must exist and be writable ({})", file.string(),
                    std::generic_category().message(errno));
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw DataError("can't write {}: a directory has its name", file.string());
  }
}

Hdf5Image make_image(const Universe& universe, const std::filesystem::path& file) {
  const Hdf5Lock lock;
  Hdf5Image image(file);
  try {
    write_contents(image.id(), universe);
  } catch (const ResourceError& fault) {
    throw ResourceError("can't write {}: {}", file.string(), fault.what());
  }
  return image;
}

}  // namespace

std::string universe_file_name(std::int64_t index) {
  return fmt::format("universe_{:05d}.hdf5", index);
}

void write_universe(const Universe& universe, const std::filesystem::path& file) {
  check_place(file);
  const std::filesystem::path partial = file.parent_path() / fmt::format(".{}.partial", file.filename().string());
  write_durably(file, make_image(universe, file).bytes(), partial);
}

}  // namespace halograd
