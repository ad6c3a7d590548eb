#include "halograd/data/hdf5_voxels.hpp"

#include "halograd/core/error.hpp"

#include <array>
#include <filesystem>
#include <system_error>

namespace halograd {
namespace {

using Dims = std::vector<hsize_t>;

constexpr std::int64_t default_chunk_cache = std::int64_t{1} << 20;
constexpr std::int64_t largest_chunk_cache = std::int64_t{1} << 30;  // held only while the file is open

/// Three to five numbers in the order of the file's dimensions.
Dims in_file_order(const VolumeLayout& layout, std::int64_t entries, std::int64_t channels, const Extent& e) {
  const auto size = [](std::int64_t n) { return static_cast<hsize_t>(n); };
  Dims dims;
  if (layout.stacked) dims.push_back(size(entries));
  if (layout.channel_axis && layout.layout.channels_first) dims.push_back(size(channels));
  for (int i = 0; i < 3; ++i) dims.push_back(size(e[i]));
  if (layout.channel_axis && !layout.layout.channels_first) dims.push_back(size(channels));
  return dims;
}

/// "[16,16,16,4] of u16, chunks [8,8,8,4], compressed": equal where a file can be read as planned.
std::string description(const Dims& dims, const std::string& type, const Dims& chunk, bool compressed) {
  std::string text = fmt::format("{} of {}", hdf5_shape_text(dims), type);
  if (!chunk.empty()) text += fmt::format(", chunks {}", hdf5_shape_text(chunk));
  return compressed ? text + ", compressed" : text;
}

constexpr const char* swapped = " in another byte order";

std::string description_of(const VolumeLayout& layout) {
  const char letter = layout.layout.dtype == DType::f32 ? 'f' : (layout.layout.dtype == DType::i16 ? 'i' : 'u');
  std::string type = fmt::format("{}{}", letter, 8 * layout.file_element_bytes);
  if (layout.converted && layout.file_element_bytes == dtype_size(layout.layout.dtype)) type += swapped;
  const Dims chunk =
      layout.chunked ? in_file_order(layout, layout.chunk_entries, layout.chunk_channels, layout.chunk) : Dims();
  return description(in_file_order(layout, layout.entries, layout.shape.channels, layout.shape.extent), type, chunk,
                     layout.compressed);
}

std::string description_of(hid_t dataset, DType read_as) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  const Hdf5Handle file_type(H5Dget_type(dataset), H5Tclose);
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  std::string type = hdf5_type_text(file_type.id());
  const H5T_class_t kind = H5Tget_class(file_type.id());
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    type = type.substr(0, type.find(' '));
    const bool as_large = static_cast<std::int64_t>(H5Tget_size(file_type.id())) == dtype_size(read_as);
    if (as_large && hdf5_dtype(file_type.id()) == read_as && H5Tequal(file_type.id(), hdf5_native_type(read_as)) <= 0)
      type += swapped;
  }
  return description(hdf5_dims(space.id()), type, hdf5_chunk_dims(creation.id()), H5Pget_nfilters(creation.id()) > 0);
}

/// With room for one chunk, up to a size: of chunks that don't fit, HDF5 reads row after row (a fifth of the speed).
Hdf5Handle dataset_access(const VolumeLayout& layout) {
  Hdf5Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  const std::int64_t chunk =
      layout.chunk.volume() * layout.chunk_channels * layout.chunk_entries * layout.file_element_bytes;
  if (layout.chunked && chunk > default_chunk_cache && chunk <= largest_chunk_cache) {
    H5Pset_chunk_cache(access.id(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, static_cast<std::size_t>(chunk), 1.0);
  }
  return access;
}

Hdf5Handle select(Hdf5Handle space, const Dims& start, const Dims& count) {
  const bool nothing = count.empty();
  const herr_t status =
      nothing ? H5Sselect_none(space.id())
              : H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  return status < 0 ? Hdf5Handle() : std::move(space);
}

}  // namespace

Hdf5Voxels::Hdf5Voxels(const SamplePlace& place, const Hdf5Access& access)
    : Hdf5Voxels(place, open_hdf5_file(place.file, access.file.id())) {}

Hdf5Voxels::Hdf5Voxels(const SamplePlace& place, Hdf5Handle file) : Hdf5Voxels(place, file.id()) {
  file_ = std::move(file);
}

Hdf5Voxels::Hdf5Voxels(const SamplePlace& place, hid_t file) : place_(place) {
  for (const VolumeLayout& layout : place.layout.volumes()) {
    const char* const name = volume_name(layout.name);
    const Hdf5Handle dataset_list = dataset_access(layout);
    Hdf5Handle dataset(H5Dopen2(file, name, dataset_list.id()), H5Dclose);
    const std::string before = description_of(layout);
    const std::string now = dataset.valid() ? description_of(dataset.id(), layout.layout.dtype) : "missing";
    if (now != before) {
      throw DataError(
          "{}: `{}` is {}; it was {} when the data set was opened: expected files that do not change "
          "during a run",
          place.file, name, now, before);
    }
    volumes_.push_back({layout, std::move(dataset)});
  }
  H5Fget_filesize(file, &length_);
}

void Hdf5Voxels::read(const Hdf5Access& access, std::size_t volume, const Box& part, const Box& box,
                      std::byte* to) const {
  const auto& [layout, dataset] = volumes_[volume];
  const std::int64_t channels = layout.shape.channels;
  const Box in_volume = part.relative_to({-place_.origin.d, -place_.origin.h, -place_.origin.w});
  const bool nothing = part.empty();
  const Dims count = nothing ? Dims() : in_file_order(layout, 1, channels, part.extent());
  const Dims held = in_file_order(layout, 1, channels, nothing ? Extent::cube(1) : box.extent());
  const Hdf5Handle in_file =
      select({H5Dget_space(dataset.id()), H5Sclose}, in_file_order(layout, place_.entry, 0, in_volume.lo), count);
  const Hdf5Handle in_memory = select({H5Screate_simple(static_cast<int>(held.size()), held.data(), nullptr), H5Sclose},
                                      in_file_order(layout, 0, 0, part.relative_to(box.lo).lo), count);
  std::byte unused{};  // HDF5 wants an address even for nothing
  if (H5Dread(dataset.id(), hdf5_native_type(layout.layout.dtype), in_memory.id(), in_file.id(), access.transfer.id(),
              nothing ? &unused : to) < 0) {
    throw DataError("{}: `{}` cannot be read ({}); expected undamaged voxels", place_.file, volume_name(layout.name),
                    hdf5_reason());
  }
}

void Hdf5Voxels::check_length() const {
  std::error_code failed;
  const auto now = std::filesystem::file_size(place_.file, failed);
  if (failed || now >= length_) return;  // a file that is gone by now was read while it was there
  throw DataError(
      "{}: cut short while it was read, from {} bytes to {}; expected files that do not change during a run",
      place_.file, length_, now);
}

}  // namespace halograd
