#include "halograd/data/file_layout.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_handle.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace halograd {
namespace {

using Dims = std::vector<hsize_t>;

/// The dimensions of `full`, or of a chunk of it, by their meaning.
struct VoxelDims {
  std::int64_t entries = 1;
  GlobalShape shape;
};

/// `dims`: four of them, or five with the samples of a stacked file first.
VoxelDims voxel_dims(const Dims& dims, bool channels_first) {
  const auto size = [&](std::size_t i) { return static_cast<std::int64_t>(dims.at(i)); };
  const std::size_t sample = dims.size() - 4;
  const std::size_t spatial = channels_first ? sample + 1 : sample;
  return {sample == 0 ? 1 : size(0),
          {size(channels_first ? sample : sample + 3), {size(spatial), size(spatial + 1), size(spatial + 2)}}};
}

bool fits(const VoxelDims& dims, const FileExpectation& expected) {
  const Extent& whole = dims.shape.extent;
  const Extent& sample = expected.shape.extent;
  for (int i = 0; i < 3; ++i) {
    const bool multiple = sample[i] > 0 && whole[i] > 0 && whole[i] % sample[i] == 0;
    if (expected.subvolumes ? !multiple : whole[i] != sample[i]) return false;
  }
  return dims.entries > 0 && dims.shape.channels == expected.shape.channels;
}

/// Whether a `full` of these dimensions is taken as channels first; nothing where it fits neither way.
std::optional<bool> channels_first(const Dims& dims, const FileExpectation& expected) {
  if (dims.size() != 4 && dims.size() != 5) return std::nullopt;
  for (const bool first : {false, true}) {
    if (fits(voxel_dims(dims, first), expected)) return first;
  }
  return std::nullopt;
}

std::string expected_voxels(const FileExpectation& expected) {
  const std::int64_t c = expected.shape.channels;
  const Extent& e = expected.shape.extent;
  const std::string extent = expected.subvolumes ? "D,H,W" : fmt::format("{},{},{}", e.d, e.h, e.w);
  std::string text = fmt::format("expected `full` [{1},{0}] or [{0},{1}], or [S,…] of either,", c, extent);
  if (expected.subvolumes) text += fmt::format(" D, H and W multiples of {}, {} and {},", e.d, e.h, e.w);
  return text + " of 16-bit integers (i8, u8, f32 and f64 are read too)";
}

/// What would make a file acceptable that is too large by whole multiples; "" for others.
std::string remedy(const Dims& dims, const FileExpectation& expected) {
  FileExpectation cut = expected;
  cut.subvolumes = true;
  const std::optional<bool> first = channels_first(dims, cut);
  if (expected.subvolumes || expected.prediction || !first) return "";
  const Extent whole = voxel_dims(dims, *first).shape.extent;
  const Extent& sample = expected.shape.extent;
  return fmt::format("; `data.subvolume` would cut it into {}x{}x{} of them", whole.d / sample.d, whole.h / sample.h,
                     whole.w / sample.w);
}

Hdf5Handle open_dataset(hid_t file, const char* name) {
  return {H5Dopen2(file, name, H5P_DEFAULT), H5Dclose};
}

/// HDF5 hands out the fill value, and no error, for values that were never written. Chunks are counted, since its
/// space status compares bytes, which says nothing of compressed chunks, nor of ones that reach beyond the volume.
void check_written(const std::string& file, hid_t dataset, const char* name, const Dims& chunk) {
  hsize_t expected = 1;
  hsize_t stored = 0;
  if (chunk.empty()) {
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    if (H5Dget_space_status(dataset, &status) >= 0 && status != H5D_SPACE_STATUS_NOT_ALLOCATED) stored = 1;
  } else {
    const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
    const Dims dims = hdf5_dims(space.id());
    for (std::size_t i = 0; i < dims.size(); ++i) expected *= (dims[i] + chunk[i] - 1) / chunk[i];
    if (H5Dget_num_chunks(dataset, space.id(), &stored) < 0) {
      throw DataError("{}: the chunks of `{}` cannot be counted ({}); expected an undamaged file", file, name,
                      hdf5_reason());
    }
  }
  if (stored == 0) throw DataError("{}: `{}` was never written; expected its values", file, name);
  if (stored < expected) {
    throw DataError("{}: `{}` was never written in part ({} of its {} chunks are missing); expected all its values",
                    file, name, expected - stored, expected);
  }
}

void check_filters(const std::string& file, hid_t creation, const char* name) {
  const int filters = H5Pget_nfilters(creation);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t values = 0;
    std::array<char, 64> filter{};
    const H5Z_filter_t number = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                               filter.size(), filter.data(), &config);
    if (H5Zfilter_avail(number) > 0) continue;
    throw DataError("{}: `{}` is packed by a filter that this HDF5 lacks ({} {}); expected gzip or none", file, name,
                    static_cast<int>(number), filter[0] == '\0' ? "unnamed" : filter.data());
  }
}

/// Refuses what could not be read, or would be read as something that nobody wrote.
void check_stored(const std::string& file, hid_t dataset, const char* name) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(creation.id()) == H5D_VIRTUAL || H5Pget_external_count(creation.id()) > 0) {
    throw DataError("{}: `{}` lies in other files (virtual or external); expected it stored in the file itself", file,
                    name);
  }
  check_written(file, dataset, name, hdf5_chunk_dims(creation.id()));
  check_filters(file, creation.id(), name);
}

FileLayout read_layout(const std::string& file, hid_t file_id, const FileExpectation& expected) {
  const Hdf5Handle dataset = open_dataset(file_id, "full");
  if (!dataset.valid()) throw DataError("{}: has no dataset `full`; {}", file, expected_voxels(expected));
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Dims dims = hdf5_dims(space.id());
  const std::optional<DType> dtype = hdf5_dtype(type.id());
  const std::optional<bool> first = channels_first(dims, expected);
  if (!dtype || !first) {
    throw DataError("{}: `full` is {} of {}; {}{}", file, hdf5_shape_text(dims), hdf5_type_text(type.id()),
                    expected_voxels(expected), dtype ? remedy(dims, expected) : "");
  }
  check_stored(file, dataset.id(), "full");

  const VoxelDims found = voxel_dims(dims, *first);
  FileLayout layout{.stacked = dims.size() == 5, .entries = found.entries, .shape = found.shape};
  layout.layout = {*dtype, *first};
  layout.file_element_bytes = static_cast<std::int64_t>(H5Tget_size(type.id()));
  layout.converted = H5Tequal(type.id(), hdf5_native_type(*dtype)) <= 0;
  const Hdf5Handle creation(H5Dget_create_plist(dataset.id()), H5Pclose);
  layout.compressed = H5Pget_nfilters(creation.id()) > 0;
  const Dims chunk = hdf5_chunk_dims(creation.id());
  layout.chunked = !chunk.empty();
  if (layout.chunked) {
    const VoxelDims one = voxel_dims(chunk, *first);
    layout.chunk = one.shape.extent;
    layout.chunk_channels = one.shape.channels;
    layout.chunk_entries = one.entries;
  }
  return layout;
}

/// The parameters of each sample, checked for numbers; nothing where the file lacks them.
std::optional<std::vector<Cosmology>> read_parameters(const std::string& file, hid_t file_id, const char* name,
                                                      const FileLayout& layout) {
  if (H5Lexists(file_id, name, H5P_DEFAULT) <= 0) return std::nullopt;
  Dims right{cosmology_targets};
  if (layout.stacked) right.insert(right.begin(), static_cast<hsize_t>(layout.entries));
  const std::string expected = fmt::format("expected {} of f32", hdf5_shape_text(right));
  const Hdf5Handle dataset = open_dataset(file_id, name);
  if (!dataset.valid()) throw DataError("{}: `{}` cannot be opened; {}", file, name, expected);
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Dims dims = hdf5_dims(space.id());
  if (dims != right || H5Tget_class(type.id()) != H5T_FLOAT) {
    throw DataError("{}: `{}` is {} of {}; {}", file, name, hdf5_shape_text(dims), hdf5_type_text(type.id()), expected);
  }
  check_stored(file, dataset.id(), name);
  std::vector<Cosmology> values(static_cast<std::size_t>(layout.entries));
  if (H5Dread(dataset.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    throw DataError("{}: `{}` cannot be read ({}); {}", file, name, hdf5_reason(), expected);
  }
  for (std::size_t entry = 0; entry < values.size(); ++entry) {
    for (std::size_t i = 0; i < values[entry].size(); ++i) {
      if (std::isfinite(values[entry][i])) continue;
      const std::string place = layout.stacked ? fmt::format("{},{}", entry, i) : fmt::format("{}", i);
      throw DataError("{}: `{}`[{}] is {}; expected a number", file, name, place, values[entry][i]);
    }
  }
  return values;
}

const char* name_of(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::u16: return "u16";
    case DType::i16: return "i16";
    case DType::u8: return "u8";
  }
  return "unknown";
}

}  // namespace

std::string to_text(const FileLayout& layout) {
  std::string text = "contiguous";
  if (layout.chunked) {
    text = fmt::format("chunked {}x{}x{}", layout.chunk.d, layout.chunk.h, layout.chunk.w);
    if (layout.chunk_channels < layout.shape.channels) {
      text += fmt::format(", {} of {} channels", layout.chunk_channels, layout.shape.channels);
    }
    if (layout.chunk_entries > 1) text += fmt::format(", {} samples", layout.chunk_entries);
    text += layout.compressed ? ", compressed," : ",";
  }
  text += fmt::format(" [{}{}] {}", layout.stacked ? "S," : "", layout.layout.channels_first ? "C,D,H,W" : "D,H,W,C",
                      name_of(layout.layout.dtype));
  return layout.converted ? text + ", converted" : text;
}

FileContents inspect_file(const std::string& file, const FileExpectation& expected) {
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_hdf5_file(file);
  FileContents contents;
  contents.layout = read_layout(file, handle.id(), expected);
  const auto entries = static_cast<std::size_t>(contents.layout.entries);
  const auto targets = read_parameters(file, handle.id(), "unitPar", contents.layout);
  if (!targets && !expected.prediction) {
    throw DataError("{}: has no dataset `unitPar`; expected the targets {} of f32", file,
                    contents.layout.stacked ? fmt::format("[{},{}]", entries, cosmology_targets)
                                            : fmt::format("[{}]", cosmology_targets));
  }
  contents.targets = targets.value_or(std::vector<Cosmology>(entries));
  contents.physical.resize(entries);
  if (const auto physical = read_parameters(file, handle.id(), "physPar", contents.layout)) {
    contents.physical.assign(physical->begin(), physical->end());
  }
  return contents;
}

}  // namespace halograd
