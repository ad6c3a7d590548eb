#pragma once

#include "halograd/data/hdf5_handle.hpp"
#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace halograd::test {

/// What every test voxel holds: its own global index (mod 251 in u8) plus the file's offset and 1000 an entry.
inline std::int64_t voxel_value(const GlobalShape& shape, const Index& at, std::int64_t channel) {
  return ((at.d * shape.extent.h + at.h) * shape.extent.w + at.w) * shape.channels + channel;
}

/// A file to be written; as it is, one that is right.
struct SampleFile {
  GlobalShape shape{4, Extent::cube(8)};  ///< of one volume
  DType dtype = DType::u16;               ///< as it is read
  bool channels_first = false;
  std::int64_t entries = 0;          ///< above 0: stacked, that many volumes
  std::int64_t offset = 0;           ///< added to every voxel
  std::int64_t modulus = 0;          ///< above 0: of every voxel before the offset, for types of one byte
  std::optional<hid_t> file_type{};  ///< where it is not the native type of `dtype`
  std::vector<hsize_t> chunk{};      ///< empty: contiguous
  int gzip = 0;                      ///< level; 0: none
  bool voxels_written = true;
  std::optional<Cosmology> targets = Cosmology{0.25F, -0.5F, 0.75F, -1.0F};
  std::optional<Cosmology> physical = Cosmology{0.3089F, 0.8159F, 0.9667F, 67.74F};
  std::optional<std::vector<hsize_t>> target_dims{};  ///< of `unitPar`, where they are wrong
  hid_t target_type = H5T_IEEE_F32LE;                 ///< of both parameters
  bool parameters_written = true;
  bool not_a_number = false;  ///< puts NaN in the last voxel (f32)
  bool extras = false;        ///< with groups, datasets and attributes of no account
};

/// The parameters of an entry: the file's, the first of them larger by 1/1000 an entry.
inline Cosmology of_entry(Cosmology values, std::int64_t entry) {
  values[0] += static_cast<float>(entry) / 1000.0F;
  return values;
}

template <typename Value>
std::vector<std::byte> voxels_as(const SampleFile& sample, const Box& box, std::int64_t entry) {
  const Extent e = box.extent();
  std::vector<Value> values(static_cast<std::size_t>(e.volume() * sample.shape.channels));
  for (Index at = box.lo; at.d < box.hi.d; ++at.d) {
    for (at.h = box.lo.h; at.h < box.hi.h; ++at.h) {
      for (at.w = box.lo.w; at.w < box.hi.w; ++at.w) {
        for (std::int64_t c = 0; c < sample.shape.channels; ++c) {
          const Index i{at.d - box.lo.d, at.h - box.lo.h, at.w - box.lo.w};
          const std::int64_t voxel = (i.d * e.h + i.h) * e.w + i.w;
          const std::int64_t place = sample.channels_first ? c * e.volume() + voxel : voxel * sample.shape.channels + c;
          std::int64_t value = voxel_value(sample.shape, at, c) + 1000 * entry;
          if (sample.modulus > 0) value %= sample.modulus;
          value += sample.offset;
          values[static_cast<std::size_t>(place)] = static_cast<Value>(sizeof(Value) == 1 ? value % 251 : value);
        }
      }
    }
  }
  if constexpr (std::is_floating_point_v<Value>) {
    if (sample.not_a_number) values.back() = std::numeric_limits<Value>::quiet_NaN();
  }
  std::vector<std::byte> bytes(values.size() * sizeof(Value));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// The bytes that reading `box` of an entry must give.
inline std::vector<std::byte> expected_voxels(const SampleFile& sample, const Box& box, std::int64_t entry = 0) {
  switch (sample.dtype) {
    case DType::f32: return voxels_as<float>(sample, box, entry);
    case DType::i16: return voxels_as<std::int16_t>(sample, box, entry);
    case DType::u8: return voxels_as<std::uint8_t>(sample, box, entry);
    default: return voxels_as<std::uint16_t>(sample, box, entry);
  }
}

/// Where it is null, nothing is written into the new dataset.
inline void write_dataset(hid_t group, const char* name, const std::vector<hsize_t>& dims, hid_t file_type,
                          hid_t memory_type, const void* values, hid_t creation = H5P_DEFAULT) {
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
  const Hdf5Handle set(H5Dcreate2(group, name, file_type, space.id(), H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose);
  const bool written = values == nullptr || H5Dwrite(set.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
  if (!set.valid() || !written) throw std::runtime_error(std::string("cannot write a test file's ") + name);
}

/// One row an entry where the file is stacked.
inline std::vector<hsize_t> parameter_dims(const SampleFile& sample) {
  return sample.entries > 0 ? std::vector<hsize_t>{static_cast<hsize_t>(sample.entries), 4} : std::vector<hsize_t>{4};
}

inline void write_parameters(hid_t file, const char* name, const SampleFile& sample, const Cosmology& values,
                             const std::vector<hsize_t>& dims) {
  std::vector<float> all;
  for (std::int64_t entry = 0; entry < std::max<std::int64_t>(sample.entries, 1); ++entry) {
    const Cosmology one = of_entry(values, entry);
    all.insert(all.end(), one.begin(), one.end());
  }
  std::size_t count = 1;
  for (const hsize_t dim : dims) count *= dim;
  all.resize(std::max(count, all.size()));
  write_dataset(file, name, dims, sample.target_type, H5T_NATIVE_FLOAT,
                sample.parameters_written ? all.data() : nullptr);
}

inline void write_extras(hid_t file) {
  const std::array<float, 4> redshifts{3.0F, 1.5F, 0.5F, 0.0F};
  write_dataset(file, "redshifts", {4}, H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, redshifts.data());
  const Hdf5Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text.id(), 8);
  write_dataset(file, "namePar", {2}, text.id(), text.id(), "Omega_m\0sigma_8");
  const Hdf5Handle group(H5Gcreate2(file, "notes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  write_dataset(group.id(), "full", {3}, H5T_STD_I64LE, H5T_NATIVE_FLOAT, nullptr);
  const Hdf5Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(H5Acreate2(file, "unitPar", H5T_IEEE_F32LE, scalar.id(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
}

/// `full`'s dimensions in the file.
inline std::vector<hsize_t> dims_of(const SampleFile& sample) {
  const Extent& e = sample.shape.extent;
  std::vector<std::int64_t> dims{e.d, e.h, e.w};
  dims.insert(sample.channels_first ? dims.begin() : dims.end(), sample.shape.channels);
  if (sample.entries > 0) dims.insert(dims.begin(), sample.entries);
  return {dims.begin(), dims.end()};
}

inline void write_sample(const std::string& path, const SampleFile& sample) {
  const Hdf5Lock lock;
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (!sample.chunk.empty()) {
    H5Pset_chunk(creation.id(), static_cast<int>(sample.chunk.size()), sample.chunk.data());
  }
  if (sample.gzip > 0) H5Pset_deflate(creation.id(), static_cast<unsigned>(sample.gzip));
  std::vector<std::byte> voxels;
  for (std::int64_t entry = 0; entry < std::max<std::int64_t>(sample.entries, 1); ++entry) {
    const std::vector<std::byte> one = expected_voxels(sample, Box::whole(sample.shape.extent), entry);
    voxels.insert(voxels.end(), one.begin(), one.end());
  }
  const hid_t native = hdf5_native_type(sample.dtype);
  write_dataset(file.id(), "full", dims_of(sample), sample.file_type.value_or(native), native,
                sample.voxels_written ? voxels.data() : nullptr, creation.id());
  if (sample.targets)
    write_parameters(file.id(), "unitPar", sample, *sample.targets,
                     sample.target_dims.value_or(parameter_dims(sample)));
  if (sample.physical) write_parameters(file.id(), "physPar", sample, *sample.physical, parameter_dims(sample));
  if (sample.extras) write_extras(file.id());
}

/// `count` files universe_000.hdf5 …, file i offset by 100·i, its first target i / 100.
inline void write_samples(const std::filesystem::path& directory, std::int64_t count, SampleFile sample = {}) {
  for (std::int64_t i = 0; i < count; ++i) {
    sample.offset = 100 * i;
    sample.targets = Cosmology{static_cast<float>(i) / 100.0F, 0.0F, 0.0F, 0.0F};
    write_sample((directory / fmt::format("universe_{:03}.hdf5", i)).string(), sample);
  }
}

inline bool mentions(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

}  // namespace halograd::test
