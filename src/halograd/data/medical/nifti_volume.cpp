#include "halograd/data/medical/nifti_volume.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/system.hpp"
#include "halograd/data/medical/nifti_support.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <type_traits>

namespace halograd {
namespace {

constexpr std::int64_t piece_voxels = std::int64_t{1} << 19;

/// deflate makes nothing smaller than to this part.
constexpr std::int64_t most_compressed = 1032;

bool is_compressed(const std::filesystem::path& file) {
  return file.extension() == ".gz";
}

/// Before memory is taken for what a damaged header says.
void check_size(const std::filesystem::path& file, std::int64_t wanted) {
  std::error_code ignored;
  const auto there = static_cast<std::int64_t>(std::filesystem::file_size(file, ignored));
  if (there * (is_compressed(file) ? most_compressed : 1) < wanted) {
    throw DataError("{}: cut short: {} bytes cannot hold the voxels its header says; expected {} bytes uncompressed",
                    file.string(), there, wanted);
  }
}

template <typename T>
void take_memory(std::vector<T>& values, std::int64_t count, const std::filesystem::path& file) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t available = available_memory_bytes();
  try {
    if (bytes > available) throw std::bad_alloc();
    values.resize(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    throw ResourceError(
        "{}: needs {} for its voxels; expected that much memory for this process (the node has {} free)", file.string(),
        format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(available)));
  }
}

template <typename T>
void check_finite(std::span<const T> voxels, const std::filesystem::path& file) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::ranges::all_of(voxels, [](T value) { return std::isfinite(value); })) {
      throw DataError("{}: a voxel is not a finite number; expected numbers everywhere", file.string());
    }
  }
}

/// Calls `use(piece, first)` with the voxels in the file's order. `room(first, count)` is where they go.
template <typename T, typename Room, typename Use>
void stream_voxels(const std::filesystem::path& file, const NiftiHeader& header, const Room& room, const Use& use) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  NiftiStream stream(file, "rb", is_compressed(file));
  stream.skip_to(header.data_offset);
  for (std::int64_t first = 0; first < header.voxels(); first += piece_voxels) {
    const std::int64_t count = std::min(piece_voxels, header.voxels() - first);
    T* const piece = room(first);
    stream.read(piece, count * size, "as many voxels as its header says");
    if (header.swapped && size > 1) {
      nifti_swap_Nbytes(static_cast<std::size_t>(count), static_cast<int>(size), piece);
    }
    const std::span<const T> voxels(piece, static_cast<std::size_t>(count));
    check_finite(voxels, file);
    use(voxels, first);
  }
  stream.finish_reading();
}

template <typename T>
void write_voxels(const std::filesystem::path& file, const NiftiHeader& geometry, std::span<const T> voxels) {
  nifti_1_header raw;
  std::memcpy(&raw, geometry.bytes.data(), sizeof raw);
  raw.dim[0] = 3;
  for (std::size_t i = 0; i < 7; ++i) raw.dim[i + 1] = i < 3 ? static_cast<short>(geometry.shape[i]) : short{1};
  raw.intent_code = NIFTI_INTENT_NONE;
  raw.datatype = std::is_same_v<T, std::uint8_t> ? DT_UINT8 : DT_INT16;
  raw.bitpix = static_cast<short>(8 * sizeof(T));
  raw.scl_slope = 1;
  raw.scl_inter = 0;
  raw.cal_min = 0;
  raw.cal_max = 0;
  raw.vox_offset = 352;
  std::memcpy(raw.magic, "n+1", 4);
  constexpr std::array<char, 4> no_extension{};
  const std::filesystem::path partial = file.parent_path() / fmt::format(".{}.partial", file.filename().string());
  try {
    NiftiStream stream(partial, "wb4", is_compressed(file), file);
    stream.write(&raw, sizeof raw);
    stream.write(no_extension.data(), no_extension.size());
    stream.write(voxels.data(), static_cast<std::int64_t>(voxels.size_bytes()));
    stream.finish_writing();
    sync_path(partial);
    rename_durably(partial, file);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw;
  }
}

}  // namespace

NiftiVoxels read_nifti_voxels(const std::filesystem::path& file, const NiftiHeader& header) {
  NiftiVoxels voxels = voxels_of_type(header.datatype);
  std::visit(
      [&]<typename T>(std::vector<T>& values) {
        check_size(file, header.data_offset + header.voxels() * static_cast<std::int64_t>(sizeof(T)));
        take_memory(values, header.voxels(), file);
        stream_voxels<T>(
            file, header, [&](std::int64_t first) { return values.data() + first; },
            [](std::span<const T>, std::int64_t) {});
      },
      voxels);
  return voxels;
}

std::vector<std::uint8_t> read_nifti_labels(const std::filesystem::path& file, const NiftiHeader& header,
                                            const LabelTable& table) {
  std::vector<std::uint8_t> labels;
  NiftiVoxels piece = voxels_of_type(header.datatype);
  std::visit(
      [&]<typename T>(std::vector<T>& values) {
        check_size(file, header.data_offset + header.voxels() * static_cast<std::int64_t>(sizeof(T)));
        take_memory(labels, header.voxels(), file);
        values.resize(static_cast<std::size_t>(std::min(piece_voxels, header.voxels())));
        const auto look_up = [&](std::span<const T> stored, std::int64_t first) {
          for (std::size_t i = 0; i < stored.size(); ++i) {
            const double value = header.value(static_cast<double>(stored[i]));
            const std::optional<std::uint8_t> label = table.find(value);
            if (!label) {
              throw DataError("{}: a label is {}; expected {}", file.string(), value, table.expected());
            }
            labels[static_cast<std::size_t>(first) + i] = *label;
          }
        };
        stream_voxels<T>(
            file, header, [&](std::int64_t) { return values.data(); }, look_up);
      },
      piece);
  return labels;
}

void write_nifti(const std::filesystem::path& file, const NiftiHeader& geometry, std::span<const std::int16_t> voxels) {
  write_voxels(file, geometry, voxels);
}

void write_nifti(const std::filesystem::path& file, const NiftiHeader& geometry, std::span<const std::uint8_t> voxels) {
  write_voxels(file, geometry, voxels);
}

}  // namespace halograd
