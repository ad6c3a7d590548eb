#pragma once

#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// The kinds of files there are.
enum class FileFormat : std::uint8_t {
  cosmoflow,  ///< voxels in `full`, targets in `unitPar`
  lits,       ///< one case: voxels in `volume`, a label of each in `segmentation`
};

/// "cosmoflow" or "lits", as `data.format` has it. Throws UsageError for others.
FileFormat file_format(const std::string& name);

/// The datasets of voxels.
enum class VolumeName : std::uint8_t { full, volume, segmentation };
/// As files have it.
const char* volume_name(VolumeName name);

/// How a dataset of voxels lies in a file: what decides who reads which part of it, and how.
struct VolumeLayout {
  VolumeName name = VolumeName::full;
  bool channel_axis = true;             ///< false: one channel, [D,H,W]
  bool stacked = false;                 ///< [S,…]: several samples along a first dimension
  std::int64_t entries = 1;             ///< S
  GlobalShape shape;                    ///< of each: what the file holds, of which a sample may be a sub-volume
  SampleLayout layout;                  ///< as it is in memory once read
  std::int64_t file_element_bytes = 2;  ///< of one number in the file: 8 for f64 though it is read as f32
  bool converted = false;               ///< read through a conversion: other byte order or type
  bool chunked = false;
  bool compressed = false;  ///< or filtered otherwise: a chunk is only had whole
  Extent chunk;             ///< where chunked: voxels of a chunk
  std::int64_t chunk_channels = 0;
  std::int64_t chunk_entries = 0;  ///< 1 where not stacked
  friend bool operator==(const VolumeLayout&, const VolumeLayout&) = default;
};

/// What a file's samples are read from.
struct FileLayout {
  VolumeLayout image;
  std::optional<VolumeLayout> labels{};  ///< of the same extent

  /// The datasets a sample is read from, one behind the other in memory.
  [[nodiscard]] std::vector<VolumeLayout> volumes() const {
    return labels ? std::vector{image, *labels} : std::vector{image};
  }
  /// A box of it in memory.
  [[nodiscard]] SampleLayout sample() const {
    return {image.layout.dtype, image.layout.channels_first, labels.has_value()};
  }
  friend bool operator==(const FileLayout&, const FileLayout&) = default;
};

/// "contiguous [D,H,W,C] u16", "chunked 64x64x64, compressed, [S,C,D,H,W] i16, converted", …
std::string to_text(const VolumeLayout& layout);
/// The same of the image, then ", labels " and that of the labels.
std::string to_text(const FileLayout& layout);

/// A sample file without its voxels.
struct FileContents {
  FileLayout layout;
  ValueScale scale;                                ///< `scale` and `offset` of `volume`
  std::vector<Cosmology> targets;                  ///< [entries] of `unitPar`; zeros where absent and not required
  std::vector<std::optional<Cosmology>> physical;  ///< [entries] of `physPar`
};

/// What the file of a sample must hold.
struct FileExpectation {
  GlobalShape shape{};      ///< a sample: the network's input
  bool subvolumes = false;  ///< its extents may be multiples of the sample's
  bool prediction = false;  ///< a file without `unitPar` or `segmentation` will do then; labels are not looked at
  FileFormat format = FileFormat::cosmoflow;
};

/// Opens `file` and reads all but its voxels. Refuses what HDF5 would hand out as fill values without a word: voxels
/// never written, or kept in other files. Not collective; any thread. Throws DataError naming the file and what is
/// expected. Other datasets than these are of no account:
///
/// cosmoflow: `full` [D,H,W,C] (taken first where both fit), [C,D,H,W], or either behind a first dimension [S,…] of 8-
/// or 16-bit integers or 32- or 64-bit floats, any byte order, contiguous, chunked or compressed; `unitPar` [4] or
/// [S,4]; perhaps `physPar` likewise.
///
/// lits: `volume` [D,H,W,C], [C,D,H,W] or, of one channel, [D,H,W], of the same types, perhaps with attributes `scale`
/// and `offset`; `segmentation` [D,H,W] u8.
FileContents inspect_file(const std::string& file, const FileExpectation& expected);

}  // namespace halograd
