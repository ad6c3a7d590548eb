#include "halograd/data/file_layout.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_handle.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace halograd {
namespace {

using Dims = std::vector<hsize_t>;

/// What the dimensions of a dataset of voxels, or of a chunk of it, stand for.
struct Axes {
  bool stacked = false;  ///< [S,…]
  bool channels = true;  ///< false: [D,H,W]
  bool channels_first = false;
};

struct VoxelDims {
  std::int64_t entries = 1;
  GlobalShape shape;
};

/// `dims`: as many as the axes.
VoxelDims voxel_dims(const Dims& dims, const Axes& axes) {
  const auto size = [&](std::size_t i) { return static_cast<std::int64_t>(dims.at(i)); };
  const std::size_t sample = axes.stacked ? 1 : 0;
  const std::size_t spatial = axes.channels && axes.channels_first ? sample + 1 : sample;
  const std::int64_t channels = axes.channels ? size(axes.channels_first ? sample : sample + 3) : 1;
  return {axes.stacked ? size(0) : 1, {channels, {size(spatial), size(spatial + 1), size(spatial + 2)}}};
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

/// The axes that these dimensions are taken for; nothing where none fit.
std::optional<Axes> axes_of(const Dims& dims, const FileExpectation& expected) {
  const bool stacks = expected.format == FileFormat::cosmoflow;
  std::vector<Axes> candidates;
  if (dims.size() == 3 && !stacks) candidates = {{.channels = false}};
  if (dims.size() == 4) candidates = {{}, {.channels_first = true}};
  if (dims.size() == 5 && stacks) candidates = {{.stacked = true}, {.stacked = true, .channels_first = true}};
  for (const Axes& axes : candidates) {
    if (fits(voxel_dims(dims, axes), expected)) return axes;
  }
  return std::nullopt;
}

std::string expected_voxels(const FileExpectation& expected) {
  const std::int64_t c = expected.shape.channels;
  const Extent& e = expected.shape.extent;
  const std::string extent = expected.subvolumes ? "D,H,W" : fmt::format("{},{},{}", e.d, e.h, e.w);
  std::string text = fmt::format("expected `full` [{1},{0}] or [{0},{1}], or [S,…] of either,", c, extent);
  if (expected.format == FileFormat::lits) {
    text = c == 1 ? fmt::format("expected `volume` [{}]", extent)
                  : fmt::format("expected `volume` [{1},{0}] or [{0},{1}]", c, extent);
  }
  if (expected.subvolumes) text += fmt::format(" D, H and W multiples of {}, {} and {},", e.d, e.h, e.w);
  return text + " of 16-bit integers (i8, u8, f32 and f64 are read too)";
}

/// What would make a file acceptable that is too large by whole multiples; "" for others.
std::string remedy(const Dims& dims, const FileExpectation& expected) {
  FileExpectation cut = expected;
  cut.subvolumes = true;
  const std::optional<Axes> axes = axes_of(dims, cut);
  if (expected.subvolumes || expected.prediction || !axes) return "";
  const Extent whole = voxel_dims(dims, *axes).shape.extent;
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

/// The layout of a dataset that is known to be right.
VolumeLayout volume_layout(hid_t dataset, VolumeName name, const Axes& axes, DType dtype) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  const VoxelDims found = voxel_dims(hdf5_dims(space.id()), axes);
  VolumeLayout layout{.name = name,
                      .channel_axis = axes.channels,
                      .stacked = axes.stacked,
                      .entries = found.entries,
                      .shape = found.shape,
                      .layout = {dtype, axes.channels_first}};
  layout.file_element_bytes = static_cast<std::int64_t>(H5Tget_size(type.id()));
  layout.converted = H5Tequal(type.id(), hdf5_native_type(dtype)) <= 0;
  layout.compressed = H5Pget_nfilters(creation.id()) > 0;
  const Dims chunk = hdf5_chunk_dims(creation.id());
  layout.chunked = !chunk.empty();
  if (layout.chunked) {
    const VoxelDims one = voxel_dims(chunk, axes);
    layout.chunk = one.shape.extent;
    layout.chunk_channels = one.shape.channels;
    layout.chunk_entries = one.entries;
  }
  return layout;
}

VolumeLayout read_image(const std::string& file, hid_t file_id, const FileExpectation& expected) {
  const VolumeName name = expected.format == FileFormat::lits ? VolumeName::volume : VolumeName::full;
  const char* const called = volume_name(name);
  const Hdf5Handle dataset = open_dataset(file_id, called);
  if (!dataset.valid()) throw DataError("{}: has no dataset `{}`; {}", file, called, expected_voxels(expected));
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Dims dims = hdf5_dims(space.id());
  const std::optional<DType> dtype = hdf5_dtype(type.id());
  const std::optional<Axes> axes = axes_of(dims, expected);
  if (!dtype || !axes) {
    throw DataError("{}: `{}` is {} of {}; {}{}", file, called, hdf5_shape_text(dims), hdf5_type_text(type.id()),
                    expected_voxels(expected), dtype ? remedy(dims, expected) : "");
  }
  check_stored(file, dataset.id(), called);
  return volume_layout(dataset.id(), name, *axes, *dtype);
}

VolumeLayout read_labels(const std::string& file, hid_t file_id, const VolumeLayout& image) {
  const char* const called = volume_name(VolumeName::segmentation);
  const Extent& e = image.shape.extent;
  const std::string right = fmt::format("[{},{},{}] of u8", e.d, e.h, e.w);
  const Hdf5Handle dataset = open_dataset(file_id, called);
  if (!dataset.valid()) {
    throw DataError("{}: has no dataset `{}`; expected the labels {} (predicting does without)", file, called, right);
  }
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const std::string found = fmt::format("{} of {}", hdf5_shape_text(hdf5_dims(space.id())), hdf5_type_text(type.id()));
  // No other type: HDF5 clips what does not fit, and -1 would be read as 0 without a word.
  if (found != right) {
    throw DataError("{}: `{}` is {}; expected {}, a label for each voxel of `volume`", file, called, found, right);
  }
  check_stored(file, dataset.id(), called);
  return volume_layout(dataset.id(), VolumeName::segmentation, {.channels = false}, DType::u8);
}

/// An attribute of one number; `absent` where there is none.
double read_number(const std::string& file, hid_t file_id, const char* dataset, const char* name, double absent) {
  if (H5Aexists_by_name(file_id, dataset, name, H5P_DEFAULT) <= 0) return absent;
  const Hdf5Handle attribute(H5Aopen_by_name(file_id, dataset, name, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
  double value = std::numeric_limits<double>::quiet_NaN();
  if (H5Sget_simple_extent_npoints(space.id()) == 1) H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value);
  if (std::isfinite(value)) return value;
  throw DataError("{}: the attribute `{}` of `{}` is not a number; expected one (f64)", file, name, dataset);
}

ValueScale read_scale(const std::string& file, hid_t file_id, const VolumeLayout& image) {
  if (image.name != VolumeName::volume) return {};
  const char* const called = volume_name(image.name);
  const ValueScale scale{read_number(file, file_id, called, "scale", 1),
                         read_number(file, file_id, called, "offset", 0)};
  if (scale.scale != 0) return scale;
  throw DataError("{}: the attribute `scale` of `{}` is 0; expected another number", file, called);
}

/// The parameters of each sample, checked for numbers; nothing where the file lacks them.
std::optional<std::vector<Cosmology>> read_parameters(const std::string& file, hid_t file_id, const char* name,
                                                      const VolumeLayout& layout) {
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

/// Targets and, where there are, physical parameters of each entry.
void read_cosmology(const std::string& file, hid_t file_id, const FileExpectation& expected, FileContents& contents) {
  const VolumeLayout& image = contents.layout.image;
  const auto targets = read_parameters(file, file_id, "unitPar", image);
  if (!targets && !expected.prediction) {
    throw DataError("{}: has no dataset `unitPar`; expected the targets {} of f32", file,
                    image.stacked ? fmt::format("[{},{}]", image.entries, cosmology_targets)
                                  : fmt::format("[{}]", cosmology_targets));
  }
  if (targets) contents.targets = *targets;
  if (const auto physical = read_parameters(file, file_id, "physPar", image)) {
    contents.physical.assign(physical->begin(), physical->end());
  }
}

}  // namespace

FileFormat file_format(const std::string& name) {
  if (name == "cosmoflow") return FileFormat::cosmoflow;
  if (name == "lits") return FileFormat::lits;
  throw UsageError("data.format = \"{}\": expected \"cosmoflow\" or \"lits\"", name);
}

const char* volume_name(VolumeName name) {
  switch (name) {
    case VolumeName::full: return "full";
    case VolumeName::volume: return "volume";
    case VolumeName::segmentation: return "segmentation";
  }
  return "unknown";
}

std::string to_text(const VolumeLayout& layout) {
  std::string text = "contiguous";
  if (layout.chunked) {
    text = fmt::format("chunked {}x{}x{}", layout.chunk.d, layout.chunk.h, layout.chunk.w);
    if (layout.chunk_channels < layout.shape.channels) {
      text += fmt::format(", {} of {} channels", layout.chunk_channels, layout.shape.channels);
    }
    if (layout.chunk_entries > 1) text += fmt::format(", {} samples", layout.chunk_entries);
    text += layout.compressed ? ", compressed," : ",";
  }
  const char* const axes = !layout.channel_axis ? "D,H,W" : layout.layout.channels_first ? "C,D,H,W" : "D,H,W,C";
  text += fmt::format(" [{}{}] {}", layout.stacked ? "S," : "", axes, name_of(layout.layout.dtype));
  return layout.converted ? text + ", converted" : text;
}

std::string to_text(const FileLayout& layout) {
  const std::string text = to_text(layout.image);
  return layout.labels ? text + ", labels " + to_text(*layout.labels) : text;
}

FileContents inspect_file(const std::string& file, const FileExpectation& expected) {
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_hdf5_file(file);
  FileContents contents;
  contents.layout.image = read_image(file, handle.id(), expected);
  contents.scale = read_scale(file, handle.id(), contents.layout.image);
  const auto entries = static_cast<std::size_t>(contents.layout.image.entries);
  contents.targets.resize(entries);
  contents.physical.resize(entries);
  if (expected.format == FileFormat::cosmoflow) {
    read_cosmology(file, handle.id(), expected, contents);
  } else if (!expected.prediction) {
    contents.layout.labels = read_labels(file, handle.id(), contents.layout.image);
  }
  return contents;
}

}  // namespace halograd
