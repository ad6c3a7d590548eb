#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/data/file_layout.hpp"
#include "halograd/data/read_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace halograd {

/// One sample of a file, or a sub-volume of it.
struct SamplePlace {
  std::string file;
  FileLayout layout;       ///< as found when the data set was opened: the file must still be so
  std::int64_t entry = 0;  ///< of a stacked file
  Index origin;            ///< of a sub-volume
};

/// Reads hyperslabs of samples through one HDF5 driver, under the Hdf5Lock, and counts the bytes. Used from one thread.
class HyperslabReader {
public:
  /// `group`: the ranks that read together with ReadDriver::mpi_collective, with traffic of their own; not otherwise
  /// used. Throws UsageError for an MPI driver in a process without MPI.
  HyperslabReader(const Communicator& group, ReadDriver driver);

  /// Reads `box` (the sample's own indices; may be empty) into `to`, dense, as place.layout.layout says. Collective
  /// over the group with mpi_collective, where all give the same place; never otherwise. Throws DataError naming the
  /// file: gone, unreadable, cut short, damaged, no longer of this layout. In a collective read no rank waits for one
  /// that failed: the others return, their buffers untouched, and it is for the caller to agree on the failure.
  void read(const SamplePlace& place, const Box& box, std::byte* to);

  /// Bytes of voxels taken from files so far, in the files' own type; whole chunks where a file is chunked (each as
  /// often as it was read).
  [[nodiscard]] std::int64_t bytes_read() const { return bytes_read_; }
  [[nodiscard]] ReadDriver driver() const { return driver_; }

private:
  Communicator group_;
  ReadDriver driver_;
  std::int64_t bytes_read_ = 0;
};

}  // namespace halograd
