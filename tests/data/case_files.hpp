#pragma once

#include "data/sample_files.hpp"

#include <functional>
#include <map>

namespace halograd::test {

/// A file of the format "lits" to be written; as it is, one that is right.
struct CaseFile {
  GlobalShape shape{1, Extent::cube(8)};
  DType dtype = DType::i16;          ///< of `volume`, as it is read
  std::optional<hid_t> file_type{};  ///< where it is not the native type of `dtype`
  bool channel_axis = false;
  bool channels_first = false;
  std::int64_t offset = 0;  ///< added to every voxel; changes the labels too
  std::vector<hsize_t> chunk{};
  std::vector<hsize_t> label_chunk{};
  int gzip = 0;  ///< of both
  std::map<std::string, double> attributes{};
  bool volume = true;  ///< whether it is there at all
  bool labels = true;
  std::optional<Extent> label_extent{};
  hid_t label_type = H5T_STD_U8LE;
  std::optional<std::uint8_t> last_label{};
  bool not_a_number = false;  ///< in the last voxel (f32)

  /// The number stored for a voxel: its index and the file's offset.
  [[nodiscard]] std::int64_t number(const Index& at, std::int64_t channel = 0) const {
    return voxel_value(shape, at, channel) + offset;
  }
  /// 0 to 2, in no pattern that a flip would leave as it is.
  [[nodiscard]] std::uint8_t label(const Index& at) const {
    const auto index = static_cast<std::uint32_t>(voxel_value({1, shape.extent}, at, 0) + offset);
    return static_cast<std::uint8_t>((index * 2654435761U >> 16) % 3);
  }
};

inline void for_each_index(const Extent& extent, const std::function<void(const Index&)>& work) {
  for (Index at; at.d < extent.d; ++at.d) {
    for (at.h = 0; at.h < extent.h; ++at.h) {
      for (at.w = 0; at.w < extent.w; ++at.w) work(at);
    }
  }
}

inline Hdf5Handle creation_of(const std::vector<hsize_t>& chunk, int gzip) {
  Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (!chunk.empty()) H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data());
  if (gzip > 0) H5Pset_deflate(creation.id(), static_cast<unsigned>(gzip));
  return creation;
}

inline void write_volume(hid_t file, const CaseFile& sample) {
  std::vector<double> values;
  const std::int64_t channels = sample.shape.channels;
  for (std::int64_t outer = 0; outer < (sample.channels_first ? channels : 1); ++outer) {
    for_each_index(sample.shape.extent, [&](const Index& at) {
      for (std::int64_t inner = 0; inner < (sample.channels_first ? 1 : channels); ++inner) {
        values.push_back(static_cast<double>(sample.number(at, outer + inner)));
      }
    });
  }
  if (sample.not_a_number) values.back() = std::numeric_limits<double>::quiet_NaN();
  const Extent& e = sample.shape.extent;
  std::vector<std::int64_t> dims{e.d, e.h, e.w};
  if (sample.channel_axis) dims.insert(sample.channels_first ? dims.begin() : dims.end(), channels);
  write_dataset(file, "volume", {dims.begin(), dims.end()}, sample.file_type.value_or(hdf5_native_type(sample.dtype)),
                H5T_NATIVE_DOUBLE, values.data(), creation_of(sample.chunk, sample.gzip).id());
  const Hdf5Handle volume(H5Dopen2(file, "volume", H5P_DEFAULT), H5Dclose);
  const Hdf5Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
  for (const auto& [name, value] : sample.attributes) {
    const Hdf5Handle attribute(
        H5Acreate2(volume.id(), name.c_str(), H5T_IEEE_F64LE, scalar.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    H5Awrite(attribute.id(), H5T_NATIVE_DOUBLE, &value);
  }
}

inline void write_labels(hid_t file, const CaseFile& sample) {
  const Extent e = sample.label_extent.value_or(sample.shape.extent);
  std::vector<std::uint8_t> labels;
  for_each_index(e, [&](const Index& at) { labels.push_back(sample.label(at)); });
  if (sample.last_label) labels.back() = *sample.last_label;
  write_dataset(file, "segmentation", {static_cast<hsize_t>(e.d), static_cast<hsize_t>(e.h), static_cast<hsize_t>(e.w)},
                sample.label_type, H5T_NATIVE_UINT8, labels.data(), creation_of(sample.label_chunk, sample.gzip).id());
}

inline void write_case(const std::string& path, const CaseFile& sample) {
  const Hdf5Lock lock;
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  if (sample.volume) write_volume(file.id(), sample);
  if (sample.labels) write_labels(file.id(), sample);
}

}  // namespace halograd::test
