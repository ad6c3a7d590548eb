#pragma once

#include <string>

namespace halograd::comm {

/// The MPI library that this process runs with, "Open MPI v4.1.4 (MPI 3.1)".
std::string mpi_version();

}  // namespace halograd::comm
