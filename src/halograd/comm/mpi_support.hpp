#pragma once

// The one header of this library that includes mpi.h: for comm/'s own sources, and for sources elsewhere that hand an
// MPI communicator to a library (HDF5). Nothing else may include it.

#include "halograd/comm/communicator.hpp"

#include <mpi.h>

#include <atomic>
#include <span>

namespace halograd {

struct Communicator::Implementation {
  Implementation() = default;
  ~Implementation();
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  MPI_Comm comm = MPI_COMM_NULL;  ///< null: one rank alone, no MPI
  int rank = 0;
  int size = 1;
  std::vector<int> node_of{0};  ///< of each rank; a node's number is the lowest world rank on it
  bool one_node = true;
  bool shared_memory = true;  ///< not switched off by HALOGRAD_SHARED_MEMORY=0 on any rank
  bool spin = true;           ///< as many processors on this node as ranks of the job
  mutable std::atomic<int> tags_taken{0};
};

namespace comm {

/// Messages are cut into pieces of this many bytes: above it Open MPI allocates for every message.
constexpr std::int64_t piece_bytes = 256 * 1024;
/// Tags that one standing operation has to itself.
constexpr int tags_each = 64;

/// Throws ResourceError with MPI's own words where `code`, returned by `call`, is not MPI_SUCCESS.
void check(int code, const char* call);

/// Whether MPI calls are allowed now: initialised and not finalised.
bool mpi_running();

/// The communicator for a library that wants one; MPI_COMM_SELF for self(). Only in a process with an MPI session.
MPI_Comm native(const Communicator& communicator);

/// Waits without holding on to a core (see Backoff), unlike MPI_Wait and MPI_Waitall.
void wait(MPI_Request& request, MPI_Status* status, bool spin);
void wait_all(std::span<MPI_Request> requests, MPI_Status* statuses, bool spin);

/// The first of `tags_each` tags for a standing operation. Collective: all ranks take them in the same order.
int take_tags(const Communicator::Implementation& communicator);

/// world()'s communicator, made when the session starts and let go before it ends.
void open_world();
void close_world();

}  // namespace comm
}  // namespace halograd
