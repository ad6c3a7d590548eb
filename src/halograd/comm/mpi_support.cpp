#include "halograd/comm/mpi_support.hpp"

#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

namespace halograd::comm {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw ResourceError("communication failed in {}: {}", call, std::string(text, static_cast<std::size_t>(length)));
}

bool mpi_running() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

MPI_Comm native(const Communicator& communicator) {
  const MPI_Comm comm = communicator.implementation().comm;
  return comm == MPI_COMM_NULL ? MPI_COMM_SELF : comm;
}

void wait(MPI_Request& request, MPI_Status* status, bool spin) {
  Backoff backoff(spin);
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, status), "MPI_Test");
    if (done != 0) return;
    backoff.pause();
  }
}

void wait_all(std::span<MPI_Request> requests, MPI_Status* statuses, bool spin) {
  // One after the other: every look moves all of them, and each that is done starts the patience anew.
  for (std::size_t i = 0; i < requests.size(); ++i) {
    wait(requests[i], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i, spin);
  }
}

int take_tags(const Communicator::Implementation& communicator) {
  int* upper_bound = nullptr;
  int found = 0;
  check(MPI_Comm_get_attr(communicator.comm, MPI_TAG_UB, &upper_bound, &found), "MPI_Comm_get_attr");
  const int sets = (found != 0 ? *upper_bound : 32767) / tags_each;
  return communicator.tags_taken.fetch_add(1) % sets * tags_each;
}

}  // namespace halograd::comm
