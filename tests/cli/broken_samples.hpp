#pragma once

#include "halograd/data/hdf5_handle.hpp"

#include <array>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <vector>

namespace halograd::test {

/// What a sample file is made to hold, right or wrong.
struct SampleContents {
  std::vector<hsize_t> shape{32, 32, 32, 4};
  hid_t type = H5T_STD_U16LE;
  const char* voxels = "full";      ///< the name of their dataset
  float value = 3;                  ///< of every voxel
  bool number_missing = false;      ///< NaN as the last voxel (of floats)
  bool target_missing = false;      ///< NaN as a target
  const char* targets = "unitPar";  ///< the name of their dataset
};

/// Writes a file of constant voxels and targets.
inline void write_contents(const std::filesystem::path& path, const SampleContents& contents) {
  const Hdf5Lock lock;
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const auto write = [&](const char* name, const std::vector<hsize_t>& dims, hid_t type, std::vector<float> values) {
    const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
    const Hdf5Handle set(H5Dcreate2(file.id(), name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         H5Dclose);
    if (H5Dwrite(set.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
      throw std::runtime_error("cannot write a test file");
    }
  };
  constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
  std::size_t count = 1;
  for (const hsize_t dim : contents.shape) count *= dim;
  std::vector<float> voxels(count, contents.value);
  if (contents.number_missing) voxels.back() = not_a_number;
  write(contents.voxels, contents.shape, contents.type, voxels);
  write(contents.targets, {4}, H5T_IEEE_F32LE, {0.1F, contents.target_missing ? not_a_number : 0.2F, -0.3F, 0.4F});
}

}  // namespace halograd::test
