#include "halograd/data/hdf5_lock.hpp"

#include "halograd/data/hdf5_handle.hpp"

#include <mutex>

namespace halograd {
namespace {

std::recursive_mutex& hdf5_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

}  // namespace

Hdf5Lock::Hdf5Lock() {
  hdf5_mutex().lock();
  // Without thread safety HDF5 keeps one error stack for the process, so once is enough for all threads.
  [[maybe_unused]] static const bool silenced = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
}

Hdf5Lock::~Hdf5Lock() {
  hdf5_mutex().unlock();
}

}  // namespace halograd
