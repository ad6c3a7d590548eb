#pragma once

// Brings hdf5.h along; include it from .cpp files only.
#include "halograd/data/hdf5_handle.hpp"

#include <initializer_list>
#include <string>

namespace halograd {

// Making the objects of a small file or of an image in memory. Hold the Hdf5Lock. All throw ResourceError.

/// A contiguous dataset with all its values, without a time stamp, which would make two runs' bytes differ.
Hdf5Handle write_hdf5_dataset(hid_t file, const char* name, hid_t file_type, hid_t memory_type,
                              std::initializer_list<hsize_t> shape, const void* values);

/// An attribute of `object`; without a shape a scalar.
void write_hdf5_attribute(hid_t object, const char* name, hid_t file_type, hid_t memory_type,
                          std::initializer_list<hsize_t> shape, const void* values);

/// An attribute that is a string of fixed length.
void write_hdf5_attribute(hid_t object, const char* name, const std::string& text);

}  // namespace halograd
