#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/data/file_layout.hpp"
#include "halograd/data/read_plan.hpp"
#include "halograd/data/read_requests.hpp"
#include "halograd/data/sample_place.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace halograd {

/// Whether this process may use the MPI drivers: those of a job with an MPI session.
bool mpi_drivers_available();
/// Throws UsageError for an MPI driver where there are none.
void require_driver(ReadDriver driver);

struct Hdf5Access;
class Hdf5Voxels;

/// Reads hyperslabs of samples, voxels and labels, through one HDF5 driver, under the Hdf5Lock, and counts the bytes.
/// Used from one thread. A collective read holds the lock while it waits for the group's other ranks: of the readers of
/// a process only one thread's may be collective.
class HyperslabReader {
public:
  /// `group`: the ranks that read together with ReadDriver::mpi_collective, with traffic of their own; not otherwise
  /// used. `max_request`: bytes of one HDF5 call. Not collective. Throws UsageError for an MPI driver in a process
  /// without MPI.
  HyperslabReader(const Communicator& group, ReadDriver driver, std::int64_t max_request = largest_request);

  /// Reads `box` (the sample's own indices; may be empty) into `to`, dense, as place.layout.sample() says. Collective
  /// over the group with mpi_collective, where all give the same place; never otherwise. Throws DataError naming the
  /// file: gone, unreadable, cut short, damaged, no longer of this layout. In a collective read no rank waits for one
  /// that failed: the others return, their buffers untouched, and it is for the caller to agree on the failure.
  void read(const SamplePlace& place, const Box& box, std::byte* to);

  /// Bytes of voxels and labels taken from files so far, in the files' own type; whole chunks where a file is chunked
  /// (each as often as it was read). Not counted: what the POSIX driver reads between the rows of a box.
  [[nodiscard]] std::int64_t bytes_read() const { return bytes_read_; }
  [[nodiscard]] ReadDriver driver() const { return driver_; }

private:
  [[nodiscard]] const Hdf5Access& access();
  struct Part;
  [[nodiscard]] std::vector<Part> parts_of(const SamplePlace& place, const Box& box, std::byte* to) const;
  void read_alone(const SamplePlace& place, const std::vector<Part>& parts, const Box& box);
  void read_together(const SamplePlace& place, const std::vector<Part>& parts, const Box& box);
  std::exception_ptr read_rounds(const Hdf5Voxels& voxels, const SamplePlace& place, const std::vector<Part>& parts,
                                 const Box& box, const std::vector<std::int64_t>& rounds);

  Communicator group_;
  ReadDriver driver_;
  std::int64_t max_request_;
  std::int64_t bytes_read_ = 0;
  std::shared_ptr<const Hdf5Access> access_;  // made for the first read
};

}  // namespace halograd
