#pragma once

#include "halograd/data/hdf5_handle.hpp"
#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"

#include <fmt/format.h>
#include <stdlib.h>

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

/// A directory of its own that goes away with its owner.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "halograd-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

/// What every test voxel holds: its own global index (mod 251 in u8) plus the file's offset.
inline std::int64_t voxel_value(const GlobalShape& shape, const Index& at, std::int64_t channel) {
  return ((at.d * shape.extent.h + at.h) * shape.extent.w + at.w) * shape.channels + channel;
}

struct SampleFile {
  GlobalShape shape{4, Extent::cube(8)};
  DType dtype = DType::u16;
  bool channels_first = false;
  std::int64_t offset = 0;           ///< added to every voxel
  std::optional<hid_t> file_type{};  ///< where it is not the native type of `dtype`
  std::vector<hsize_t> chunk{};      ///< empty: contiguous
  int gzip = 0;                      ///< level; 0: none
  bool voxels_written = true;
  std::optional<Cosmology> targets = Cosmology{0.25F, -0.5F, 0.75F, -1.0F};
  std::optional<Cosmology> physical = Cosmology{0.3089F, 0.8159F, 0.9667F, 67.74F};
  hsize_t target_count = 4;
  bool not_a_number = false;  ///< puts NaN in the last voxel (f32)
};

template <typename Value>
std::vector<std::byte> voxels_as(const SampleFile& sample, const Box& box) {
  const Extent e = box.extent();
  std::vector<Value> values(static_cast<std::size_t>(e.volume() * sample.shape.channels));
  for (Index at = box.lo; at.d < box.hi.d; ++at.d) {
    for (at.h = box.lo.h; at.h < box.hi.h; ++at.h) {
      for (at.w = box.lo.w; at.w < box.hi.w; ++at.w) {
        for (std::int64_t c = 0; c < sample.shape.channels; ++c) {
          const Index i{at.d - box.lo.d, at.h - box.lo.h, at.w - box.lo.w};
          const std::int64_t voxel = (i.d * e.h + i.h) * e.w + i.w;
          const std::int64_t place = sample.channels_first ? c * e.volume() + voxel : voxel * sample.shape.channels + c;
          const std::int64_t value = voxel_value(sample.shape, at, c) + sample.offset;
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

/// The bytes that reading `box` must give.
inline std::vector<std::byte> expected_voxels(const SampleFile& sample, const Box& box) {
  switch (sample.dtype) {
    case DType::f32: return voxels_as<float>(sample, box);
    case DType::i16: return voxels_as<std::int16_t>(sample, box);
    case DType::u8: return voxels_as<std::uint8_t>(sample, box);
    default: return voxels_as<std::uint16_t>(sample, box);
  }
}

inline void write_floats(hid_t file, const char* name, hsize_t count, const Cosmology& values) {
  std::vector<float> padded(values.begin(), values.end());
  padded.resize(std::max<std::size_t>(count, padded.size()));
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  const Hdf5Handle set(H5Dcreate2(file, name, H5T_IEEE_F32LE, space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose);
  if (H5Dwrite(set.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()) < 0) {
    throw std::runtime_error("cannot write a test file");
  }
}

inline void write_sample(const std::string& path, const SampleFile& sample) {
  const Hdf5Lock lock;
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const Extent& e = sample.shape.extent;
  const auto size = [](std::int64_t n) { return static_cast<hsize_t>(n); };
  const hsize_t channels = size(sample.shape.channels);
  const std::array<hsize_t, 4> last{size(e.d), size(e.h), size(e.w), channels};
  const std::array<hsize_t, 4> first{channels, size(e.d), size(e.h), size(e.w)};
  const std::array<hsize_t, 4>& dims = sample.channels_first ? first : last;
  const Hdf5Handle space(H5Screate_simple(4, dims.data(), nullptr), H5Sclose);
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (!sample.chunk.empty()) H5Pset_chunk(creation.id(), 4, sample.chunk.data());
  if (sample.gzip > 0) H5Pset_deflate(creation.id(), static_cast<unsigned>(sample.gzip));
  const hid_t native = hdf5_native_type(sample.dtype);
  const Hdf5Handle full(H5Dcreate2(file.id(), "full", sample.file_type.value_or(native), space.id(), H5P_DEFAULT,
                                   creation.id(), H5P_DEFAULT),
                        H5Dclose);
  const std::vector<std::byte> voxels = expected_voxels(sample, Box::whole(e));
  if (sample.voxels_written && H5Dwrite(full.id(), native, H5S_ALL, H5S_ALL, H5P_DEFAULT, voxels.data()) < 0) {
    throw std::runtime_error("cannot write a test file");
  }
  if (sample.targets) write_floats(file.id(), "unitPar", sample.target_count, *sample.targets);
  if (sample.physical) write_floats(file.id(), "physPar", 4, *sample.physical);
}

/// `count` files universe_000.hdf5 …, file i offset by 100·i, its first target i / 100.
inline void write_samples(const std::filesystem::path& directory, std::int64_t count, SampleFile sample = {}) {
  for (std::int64_t i = 0; i < count; ++i) {
    sample.offset = 100 * i;
    sample.targets = Cosmology{static_cast<float>(i) / 100.0F, 0.0F, 0.0F, 0.0F};
    write_sample((directory / fmt::format("universe_{:03}.hdf5", i)).string(), sample);
  }
}

/// The message of the `Expected` error that `work` throws; "" (and so a failing test) where it throws none.
template <typename Expected, typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

inline bool mentions(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

}  // namespace halograd::test
