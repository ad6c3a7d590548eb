#include "halograd/data/synthetic/universe_file.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_image.hpp"
#include "halograd/data/hdf5_write.hpp"

namespace halograd {
namespace {

void write_floats(hid_t file, const char* name, const std::array<float, 4>& values) {
  write_hdf5_dataset(file, name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {4}, values.data());
}

void write_names(hid_t file) {
  constexpr std::size_t length = 8;
  std::array<std::array<char, length>, 4> text{};
  for (std::size_t i = 0; i < 4; ++i) std::string(cosmology_names[i]).copy(text[i].data(), length - 1);
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  if (H5Tset_size(type.id(), length) < 0 || H5Tset_strpad(type.id(), H5T_STR_NULLPAD) < 0) {
    throw ResourceError("making `namePar` failed ({}); is the memory full?", hdf5_reason());
  }
  write_hdf5_dataset(file, "namePar", type.id(), type.id(), {4}, text.data());
}

void write_contents(hid_t file, const Universe& universe) {
  const UniverseOptions& options = universe.options;
  const auto width = static_cast<hsize_t>(options.width);
  write_hdf5_dataset(file, "full", H5T_STD_U16LE, H5T_NATIVE_UINT16, {width, width, width, 4}, universe.counts.data());
  write_floats(file, "unitPar", universe.unit_parameters);
  const Cosmology& cosmology = universe.cosmology;
  write_floats(file, "physPar",
               {static_cast<float>(cosmology.omega_m), static_cast<float>(cosmology.sigma8),
                static_cast<float>(cosmology.spectral_index), static_cast<float>(cosmology.hubble)});
  write_floats(file, "redshifts", options.redshifts);
  write_names(file);
  const double box = options.box_size();
  write_hdf5_attribute(file, "box_mpc_h", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {}, &box);
  write_hdf5_attribute(file, "seed", H5T_STD_U64LE, H5T_NATIVE_UINT64, {}, &options.seed);
  write_hdf5_attribute(file, "index", H5T_STD_I64LE, H5T_NATIVE_INT64, {}, &universe.index);
  write_hdf5_attribute(file, "particles_per_voxel", H5T_STD_I64LE, H5T_NATIVE_INT64, {}, &options.particles_per_voxel);
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
