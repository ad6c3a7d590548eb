#pragma once

#include "data/sample_files.hpp"
#include "halograd/data/file_layout.hpp"
#include "halograd/data/hyperslab.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace halograd::test {

/// A file that is laid out as `layout` says and whose voxels hold their own index in it (mod 251 in one byte).
struct VoxelFile {
  VolumeLayout layout;
  bool big_endian = false;
  std::int64_t offset = 0;  ///< added to every voxel
};

inline VolumeLayout contiguous(const Extent& extent, std::int64_t channels = 4) {
  return {.shape = {channels, extent}};
}

inline VolumeLayout chunked(const Extent& extent, const Extent& chunk, std::int64_t channels = 4) {
  VolumeLayout layout = contiguous(extent, channels);
  layout.chunked = true;
  layout.chunk = chunk;
  layout.chunk_channels = channels;
  layout.chunk_entries = 1;
  return layout;
}

template <typename Value>
std::vector<std::byte> voxels_as(const VoxelFile& file, std::int64_t entry, const Index& origin, const Box& box) {
  const GlobalShape& shape = file.layout.shape;
  const Extent e = box.extent();
  const bool first = file.layout.layout.channels_first;
  std::vector<Value> values(static_cast<std::size_t>(box.volume() * shape.channels));
  std::size_t next = 0;
  const auto add = [&](std::int64_t d, std::int64_t h, std::int64_t w, std::int64_t c) {
    const std::int64_t plane = entry * shape.extent.d + origin.d + box.lo.d + d;
    const std::int64_t row = plane * shape.extent.h + origin.h + box.lo.h + h;
    const std::int64_t voxel = row * shape.extent.w + origin.w + box.lo.w + w;
    const std::int64_t value = voxel * shape.channels + c + file.offset;
    values[next++] = static_cast<Value>(sizeof(Value) == 1 ? value % 251 : value);
  };
  for (std::int64_t outer = 0; outer < (first ? shape.channels : 1); ++outer) {
    for (std::int64_t d = 0; d < e.d; ++d) {
      for (std::int64_t h = 0; h < e.h; ++h) {
        for (std::int64_t w = 0; w < e.w; ++w) {
          if (first) add(d, h, w, outer);
          for (std::int64_t c = 0; !first && c < shape.channels; ++c) add(d, h, w, c);
        }
      }
    }
  }
  std::vector<std::byte> bytes(values.size() * sizeof(Value));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// What reading `box` of the sample that begins at `origin` must give.
inline std::vector<std::byte> expected_voxels(const VoxelFile& file, std::int64_t entry, const Index& origin,
                                              const Box& box) {
  switch (file.layout.layout.dtype) {
    case DType::f32: return voxels_as<float>(file, entry, origin, box);
    case DType::i16: return voxels_as<std::int16_t>(file, entry, origin, box);
    case DType::u8: return voxels_as<std::uint8_t>(file, entry, origin, box);
    default: return voxels_as<std::uint16_t>(file, entry, origin, box);
  }
}

inline hid_t type_in_file(const VoxelFile& file) {
  const bool big = file.big_endian;
  switch (file.layout.layout.dtype) {
    case DType::f32:
      if (file.layout.file_element_bytes == 8) return big ? H5T_IEEE_F64BE : H5T_IEEE_F64LE;
      return big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE;
    case DType::i16:
      if (file.layout.file_element_bytes == 1) return H5T_STD_I8LE;
      return big ? H5T_STD_I16BE : H5T_STD_I16LE;
    case DType::u8: return H5T_STD_U8LE;
    default: return big ? H5T_STD_U16BE : H5T_STD_U16LE;
  }
}

inline void write_voxels(const std::string& path, const VoxelFile& file) {
  const VolumeLayout& layout = file.layout;
  const auto ordered = [&](std::int64_t entries, std::int64_t channels, const Extent& e) {
    std::vector<std::int64_t> dims{e.d, e.h, e.w};
    dims.insert(layout.layout.channels_first ? dims.begin() : dims.end(), channels);
    if (layout.stacked) dims.insert(dims.begin(), entries);
    return std::vector<hsize_t>(dims.begin(), dims.end());
  };
  std::vector<std::byte> voxels;
  for (std::int64_t entry = 0; entry < layout.entries; ++entry) {
    const auto one = expected_voxels(file, entry, {}, Box::whole(layout.shape.extent));
    voxels.insert(voxels.end(), one.begin(), one.end());
  }
  const Hdf5Lock lock;
  const Hdf5Handle handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const auto dims = ordered(layout.entries, layout.shape.channels, layout.shape.extent);
  const int rank = static_cast<int>(dims.size());
  const Hdf5Handle space(H5Screate_simple(rank, dims.data(), nullptr), H5Sclose);
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (layout.chunked) {
    H5Pset_chunk(creation.id(), rank, ordered(layout.chunk_entries, layout.chunk_channels, layout.chunk).data());
  }
  if (layout.compressed) H5Pset_deflate(creation.id(), 1);
  const Hdf5Handle full(
      H5Dcreate2(handle.id(), "full", type_in_file(file), space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
      H5Dclose);
  if (H5Dwrite(full.id(), hdf5_native_type(layout.layout.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, voxels.data()) < 0) {
    throw std::runtime_error("cannot write a test file");
  }
}

/// Overwrites what the last chunk of a dataset is stored as.
inline void damage_last_chunk(const std::string& path, const char* name = "full") {
  haddr_t address = 0;
  hsize_t bytes = 0;
  {
    const Hdf5Lock lock;
    const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle full(H5Dopen2(file.id(), name, H5P_DEFAULT), H5Dclose);
    const Hdf5Handle space(H5Dget_space(full.id()), H5Sclose);
    hsize_t chunks = 0;
    H5Dget_num_chunks(full.id(), space.id(), &chunks);
    H5Dget_chunk_info(full.id(), space.id(), chunks - 1, nullptr, nullptr, &address, &bytes);
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(address));
  file << std::string(bytes, 'x');
}

/// Whether two buffers hold the same bytes; the first that differs where they don't.
inline testing::AssertionResult same_bytes(const std::vector<std::byte>& found,
                                           const std::vector<std::byte>& expected) {
  if (found == expected) return testing::AssertionSuccess();
  if (found.size() != expected.size()) {
    return testing::AssertionFailure() << found.size() << " bytes, expected " << expected.size();
  }
  const auto at = std::ranges::mismatch(found, expected).in1 - found.begin();
  return testing::AssertionFailure() << "byte " << at << " of " << found.size() << " differs";
}

}  // namespace halograd::test
