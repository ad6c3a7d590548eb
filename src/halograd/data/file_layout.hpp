#pragma once

#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// How a file lays out its voxels (the dataset `full`): what decides who reads which part of it, and how.
struct FileLayout {
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
  friend bool operator==(const FileLayout&, const FileLayout&) = default;
};

/// "contiguous [D,H,W,C] u16", "chunked 64x64x64, compressed, [S,C,D,H,W] i16, converted", …
std::string to_text(const FileLayout& layout);

/// A sample file without its voxels.
struct FileContents {
  FileLayout layout;
  std::vector<Cosmology> targets;                  ///< [entries] of `unitPar`; zeros where absent and not required
  std::vector<std::optional<Cosmology>> physical;  ///< [entries] of `physPar`
};

/// What the file of a sample must hold.
struct FileExpectation {
  GlobalShape shape{};      ///< a sample: the network's input
  bool subvolumes = false;  ///< its extents may be multiples of the sample's
  bool prediction = false;  ///< a file without `unitPar` will do then
};

/// Opens `file` and reads all but its voxels. Takes `full` [D,H,W,C] (taken first where both fit), [C,D,H,W], or either
/// behind a first dimension [S,…] of 8- or 16-bit integers or 32- or 64-bit floats, any byte order, contiguous,
/// chunked or compressed; `unitPar` [4] or [S,4]; perhaps `physPar` likewise. Other datasets are of no account. Refuses
/// what HDF5 would hand out as fill values without a word: voxels never written, or kept in other files. Not
/// collective; any thread. Throws DataError naming the file and what is expected.
FileContents inspect_file(const std::string& file, const FileExpectation& expected);

}  // namespace halograd
