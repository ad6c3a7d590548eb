#include "halograd/data/hdf5_source.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_handle.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace halograd {
namespace {

using Dims = std::vector<hsize_t>;

Dims dims_in_file(const GlobalShape& shape, bool channels_first) {
  const auto size = [](std::int64_t n) { return static_cast<hsize_t>(n); };
  const Extent& e = shape.extent;
  if (channels_first) return {size(shape.channels), size(e.d), size(e.h), size(e.w)};
  return {size(e.d), size(e.h), size(e.w), size(shape.channels)};
}

std::string expected_voxels(const GlobalShape& shape) {
  return fmt::format("expected `full` {} or {} of 16-bit integers (u8 and f32 are read too)",
                     hdf5_shape_text(dims_in_file(shape, false)), hdf5_shape_text(dims_in_file(shape, true)));
}

Hdf5Handle open_dataset(hid_t file, const char* name) {
  return {H5Dopen2(file, name, H5P_DEFAULT), H5Dclose};
}

/// HDF5 hands out the fill value, and no error, for voxels that were never written or whose own file is missing.
void check_stored(const std::string& file, hid_t dataset) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(creation.id()) == H5D_VIRTUAL || H5Pget_external_count(creation.id()) > 0) {
    throw DataError("{}: `full` lies in other files (virtual or external); expected it stored in the file itself",
                    file);
  }
  H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
  if (H5Dget_space_status(dataset, &status) < 0 || status == H5D_SPACE_STATUS_NOT_ALLOCATED) {
    throw DataError("{}: `full` was never written; expected its voxels", file);
  }
}

struct Voxels {
  Hdf5Handle dataset;
  SampleLayout layout;
};

Voxels open_voxels(const std::string& file, hid_t file_id, const GlobalShape& shape) {
  Voxels voxels{open_dataset(file_id, "full"), {}};
  const hid_t dataset = voxels.dataset.id();
  if (!voxels.dataset.valid()) throw DataError("{}: has no dataset `full`; {}", file, expected_voxels(shape));
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Dims dims = hdf5_dims(space.id());
  const std::optional<DType> dtype = hdf5_dtype(type.id());
  const bool channels_last = dims == dims_in_file(shape, false);
  if (!dtype || (!channels_last && dims != dims_in_file(shape, true))) {
    throw DataError("{}: `full` is {} of {}; {}", file, hdf5_shape_text(dims), hdf5_type_text(type.id()),
                    expected_voxels(shape));
  }
  check_stored(file, dataset);
  voxels.layout = {*dtype, !channels_last};
  return voxels;
}

Hdf5Handle dense_space(const Dims& dims) {
  return {H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose};
}

struct VoxelRead {
  const std::string& file;
  const Voxels& voxels;
  const Box& whole;  ///< the voxels the buffer holds
  std::int64_t channels;
  std::byte* buffer;

  [[nodiscard]] std::array<hsize_t, 4> ordered(const Extent& e, std::int64_t channel) const {
    const auto size = [](std::int64_t n) { return static_cast<hsize_t>(n); };
    if (voxels.layout.channels_first) return {size(channel), size(e.d), size(e.h), size(e.w)};
    return {size(e.d), size(e.h), size(e.w), size(channel)};
  }
};

void read_piece(const VoxelRead& read, const Box& piece) {
  const hid_t dataset = read.voxels.dataset.id();
  const auto buffer_dims = read.ordered(read.whole.extent(), read.channels);
  const auto count = read.ordered(piece.extent(), read.channels);
  const auto from = read.ordered(piece.lo, 0);
  const auto to = read.ordered(piece.relative_to(read.whole.lo).lo, 0);
  const Hdf5Handle in_file(H5Dget_space(dataset), H5Sclose);
  const Hdf5Handle in_memory = dense_space({buffer_dims.begin(), buffer_dims.end()});
  const bool selected =
      H5Sselect_hyperslab(in_file.id(), H5S_SELECT_SET, from.data(), nullptr, count.data(), nullptr) >= 0 &&
      H5Sselect_hyperslab(in_memory.id(), H5S_SELECT_SET, to.data(), nullptr, count.data(), nullptr) >= 0;
  if (!selected || H5Dread(dataset, hdf5_native_type(read.voxels.layout.dtype), in_memory.id(), in_file.id(),
                           H5P_DEFAULT, read.buffer) < 0) {
    throw DataError("{}: `full` cannot be read ({}); expected undamaged voxels", read.file, hdf5_reason());
  }
}

/// Reads `piece` in requests of at most `limit` bytes, halving the slowest dimension that has more than one voxel.
void read_pieces(const VoxelRead& read, const Box& piece, std::int64_t limit) {
  const Extent extent = piece.extent();
  const std::int64_t bytes = piece.volume() * read.channels * dtype_size(read.voxels.layout.dtype);
  const int slowest = extent.d > 1 ? 0 : (extent.h > 1 ? 1 : 2);
  if (bytes <= limit || extent[slowest] <= 1) {
    read_piece(read, piece);
    return;
  }
  Box low = piece;
  Box high = piece;
  low.hi[slowest] = high.lo[slowest] = piece.lo[slowest] + extent[slowest] / 2;
  read_pieces(read, low, limit);
  read_pieces(read, high, limit);
}

void check_finite(const std::string& file, const std::vector<std::byte>& voxels) {
  const auto* values = reinterpret_cast<const float*>(voxels.data());
  const std::size_t count = voxels.size() / sizeof(float);
  const bool finite = std::all_of(values, values + count, [](float v) { return std::isfinite(v); });
  if (!finite) throw DataError("{}: `full` holds a value that is not finite; expected numbers", file);
}

/// Checks that `name` is [4] numbers; returns no handle where the file lacks it.
Hdf5Handle open_parameters(const std::string& file, hid_t file_id, const char* name) {
  if (H5Lexists(file_id, name, H5P_DEFAULT) <= 0) return {};
  Hdf5Handle dataset = open_dataset(file_id, name);
  if (!dataset.valid()) {
    throw DataError("{}: `{}` cannot be opened; expected a dataset [{}] of f32", file, name, cosmology_targets);
  }
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Dims dims = hdf5_dims(space.id());
  if (dims != Dims{cosmology_targets} || H5Tget_class(type.id()) != H5T_FLOAT) {
    throw DataError("{}: `{}` is {} of {}; expected [{}] of f32", file, name, hdf5_shape_text(dims),
                    hdf5_type_text(type.id()), cosmology_targets);
  }
  return dataset;
}

Hdf5Handle open_targets(const std::string& file, hid_t file_id, bool required) {
  Hdf5Handle dataset = open_parameters(file, file_id, "unitPar");
  if (!dataset.valid() && required) {
    throw DataError("{}: has no dataset `unitPar`; expected the targets [{}] of f32", file, cosmology_targets);
  }
  return dataset;
}

Cosmology read_parameters(const std::string& file, hid_t dataset, const char* name) {
  Cosmology values{};
  if (H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    throw DataError("{}: `{}` cannot be read ({}); expected [{}] of f32", file, name, hdf5_reason(), cosmology_targets);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) throw DataError("{}: `{}`[{}] is {}; expected a number", file, name, i, values[i]);
  }
  return values;
}

}  // namespace

SampleLayout Hdf5Source::check(const std::string& file) const {
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_hdf5_file(file);
  const Voxels voxels = open_voxels(file, handle.id(), options_.shape);
  open_targets(file, handle.id(), options_.targets_required);
  open_parameters(file, handle.id(), "physPar");
  return voxels.layout;
}

void Hdf5Source::read(const std::string& file, const Box& box, RawSample& sample) const {
  if (!Box::whole(options_.shape.extent).contains(box)) {
    throw UsageError("{}: the box to read reaches beyond the volume {}", file,
                     hdf5_shape_text(dims_in_file(options_.shape, false)));
  }
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_hdf5_file(file);
  const Voxels voxels = open_voxels(file, handle.id(), options_.shape);
  const Hdf5Handle targets = open_targets(file, handle.id(), options_.targets_required);
  const Hdf5Handle physical = open_parameters(file, handle.id(), "physPar");

  sample.file = file;
  sample.layout = voxels.layout;
  const std::int64_t bytes = box.volume() * options_.shape.channels * dtype_size(voxels.layout.dtype);
  sample.voxels.resize(static_cast<std::size_t>(bytes));
  if (bytes > 0) {
    const VoxelRead whole{file, voxels, box, options_.shape.channels, sample.voxels.data()};
    read_pieces(whole, box, options_.max_request_bytes);
  }
  if (voxels.layout.dtype == DType::f32) check_finite(file, sample.voxels);
  sample.targets = targets.valid() ? read_parameters(file, targets.id(), "unitPar") : Cosmology{};
  sample.physical.reset();
  if (physical.valid()) sample.physical = read_parameters(file, physical.id(), "physPar");
}

}  // namespace halograd
