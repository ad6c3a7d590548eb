#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace halograd {

/// One object of an HDF5 file.
struct Hdf5Item {
  std::string path;                 ///< "/" is the file's root
  std::string kind;                 ///< "group", "dataset", "type", or "link" for one that is not followed
  std::vector<std::int64_t> shape;  ///< of a dataset; empty for a scalar
  std::string type;                 ///< "u16", "f32 big-endian", "string", …
  std::string storage;              ///< "contiguous", "chunked [64,64,64,4], gzip 4", …
  std::int64_t stored_bytes = 0;    ///< what the dataset takes in the file
  std::string value;                ///< of a small dataset of numbers or strings
  std::vector<std::pair<std::string, std::string>> attributes;  ///< name and value
};

/// Everything an HDF5 file holds (a sample, a checkpoint, any other), parents before children, in order of name. Not
/// collective. Throws DataError naming the file where it is no HDF5 file or damaged.
std::vector<Hdf5Item> describe_hdf5(const std::string& file);

/// An item as lines for a terminal: the object, then each of its attributes, indented.
std::string to_text(const Hdf5Item& item);

}  // namespace halograd
