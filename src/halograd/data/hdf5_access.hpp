#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/data/hdf5_handle.hpp"
#include "halograd/data/read_plan.hpp"

#include <string>

namespace halograd {

/// How files are opened and read through one driver: HDF5's property lists for it.
struct Hdf5Access {
  Hdf5Handle file;
  Hdf5Handle transfer;

  /// Collective over `group` with ReadDriver::mpi_collective, which only then is used.
  Hdf5Access(const Communicator& group, ReadDriver driver);
};

}  // namespace halograd
