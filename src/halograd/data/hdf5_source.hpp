#pragma once

#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"

#include <cstdint>
#include <string>

namespace halograd {

/// What a sample file must hold, and how it is read.
struct Hdf5SourceOptions {
  GlobalShape shape{};           ///< `full` is [D,H,W,C] (taken first where both fit) or [C,D,H,W] of this
  bool targets_required = true;  ///< false (prediction): a file without `unitPar` is read, its targets left at 0
  std::int64_t max_request_bytes = std::int64_t{1} << 30;  ///< HDF5 1.10 trips over single requests of 2 GB
};

/// Reads hyperslabs of CosmoFlow's files: `full` (u16 or i16; u8 and f32 too), `unitPar` [4], perhaps `physPar` [4].
/// Not collective; holds the Hdf5Lock while it reads, so it may be used from any thread.
class Hdf5Source {
public:
  explicit Hdf5Source(const Hdf5SourceOptions& options) : options_(options) {}

  /// Checks what a file claims to hold without reading its voxels. Throws DataError naming the file and what is
  /// expected.
  [[nodiscard]] SampleLayout check(const std::string& file) const;

  /// Reads the voxels of `box` (global indices; may be empty) and the targets into `sample`, whose buffer is used
  /// again. Throws DataError as `check` does, and where a float voxel or target is not finite; UsageError where `box`
  /// reaches beyond the volume.
  void read(const std::string& file, const Box& box, RawSample& sample) const;

private:
  Hdf5SourceOptions options_;
};

}  // namespace halograd
