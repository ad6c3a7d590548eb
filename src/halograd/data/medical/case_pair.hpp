#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace halograd {

/// An image and its label map: `volume-N.nii[.gz]` and `segmentation-N.nii[.gz]` of one directory.
struct CasePair {
  std::string name;  ///< N, which may be any text
  std::filesystem::path volume;
  std::filesystem::path segmentation;
  std::string fault;  ///< what is wrong with the pair: a partner is missing, or there are two; "": nothing
};

/// All pairs of a directory, by name, numbers in numeric order; other files are passed over. Throws DataError where it
/// is no directory, can't be read or has none.
std::vector<CasePair> find_case_pairs(const std::filesystem::path& directory);

}  // namespace halograd
