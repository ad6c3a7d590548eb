#include "halograd/data/hdf5_version.hpp"

#include "halograd/data/hdf5_handle.hpp"
#include "halograd/data/hdf5_lock.hpp"

#include <fmt/format.h>

namespace halograd {

std::string hdf5_version() {
  const Hdf5Lock lock;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace halograd
