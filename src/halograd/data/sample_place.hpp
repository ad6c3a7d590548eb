#pragma once

#include "halograd/data/file_layout.hpp"

#include <cstdint>
#include <string>

namespace halograd {

/// Where a sample lies: in a file, at an entry of a stacked one, at a place of a larger volume.
struct SamplePlace {
  std::string file;
  FileLayout layout;       ///< as found when the data set was opened: the file must still be so
  std::int64_t entry = 0;  ///< of a stacked file
  Index origin;            ///< of a sub-volume
};

}  // namespace halograd
