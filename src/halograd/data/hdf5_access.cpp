#include "halograd/data/hdf5_access.hpp"

#include "halograd/comm/mpi_support.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hyperslab_reader.hpp"

namespace halograd {

bool mpi_drivers_available() {
  return comm::mpi_running();
}

Hdf5Access::Hdf5Access(const Communicator& group, ReadDriver driver)
    : file(hdf5_file_access()), transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose) {
  const Hdf5Lock lock;
  if (driver == ReadDriver::posix) return;
  const bool together = driver == ReadDriver::mpi_collective;
  const MPI_Comm ranks = together ? comm::native(group) : MPI_COMM_SELF;
  if (H5Pset_fapl_mpio(file.id(), ranks, MPI_INFO_NULL) < 0 ||
      H5Pset_dxpl_mpio(transfer.id(), together ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT) < 0) {
    throw ResourceError("HDF5 cannot read through MPI ({}): take the driver posix", hdf5_reason());
  }
}

}  // namespace halograd
