#include "halograd/comm/session.hpp"

#include "halograd/comm/mpi_support.hpp"
#include "halograd/core/error.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

namespace halograd {

namespace {

// What mpirun (Open MPI, MPICH, Intel MPI) and srun set for the processes they start. A process without them is alone:
// it needs no MPI_Init, which takes a while and fails where no MPI daemon can run.
bool started_by_mpirun() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

// Open MPI's own MPI-IO (seen in 4.1.4) reads several pieces of a file as one and picks them out ("data sieving");
// where ranks read unlike boxes together it can leave the end of a box zero and report no error. Ours to switch off,
// whatever the user's environment says: wrong voxels must not be a setting. Other MPI libraries take no notice.
void make_mpi_io_read_rightly() {
  setenv("OMPI_MCA_fbtl_posix_read_datasieving", "0", 1);
}

void flush_output() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

}  // namespace

MpiSession::MpiSession(int& argc, char**& argv) {
  if (comm::mpi_running() || !started_by_mpirun()) return;
  make_mpi_io_read_rightly();
  int provided = MPI_THREAD_SINGLE;
  comm::check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_MULTIPLE) {
    throw ResourceError("this MPI library was built without MPI_THREAD_MULTIPLE, which HaloGrad needs");
  }
  comm::open_world();
}

MpiSession::~MpiSession() {
  // While an exception unwinds other ranks may be stuck; MPI_Finalize would wait for them.
  if (std::uncaught_exceptions() > 0 || !comm::mpi_running()) return;
  comm::close_world();
  MPI_Finalize();
}

void abort_job(int exit_code) {
  flush_output();
  if (comm::mpi_running()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace halograd
