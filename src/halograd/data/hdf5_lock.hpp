#pragma once

namespace halograd {

/// The right to call HDF5, held while it lives: this HDF5 is not thread-safe, so every call in the process happens
/// under one lock. Recursive: a holder may take it again. The first one also silences HDF5's own printing of errors.
class Hdf5Lock {
public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;
};

}  // namespace halograd
