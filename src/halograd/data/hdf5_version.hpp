#pragma once

#include <string>

namespace halograd {

/// The HDF5 that this process runs with, "1.10.8".
std::string hdf5_version();

}  // namespace halograd
