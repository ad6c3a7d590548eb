#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/data/medical/case_file.hpp"
#include "halograd/data/medical/case_pair.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace halograd {

/// Reads a pair and brings both to W³ in canonical order, the image linearly, labels by nearest neighbour. `warning`
/// gets what was odd but could be dealt with. Holds one file at a time: the image in its own type, or the labels as a
/// byte a voxel, besides the W³ results. Not collective. Throws DataError naming the file that is at fault.
MedicalCase load_case(const CasePair& pair, const CaseSettings& settings, std::string& warning);

/// A directory of NIfTI pairs to convert.
struct Conversion {
  std::filesystem::path volumes;
  std::filesystem::path out;  ///< made where it doesn't exist
  CaseSettings settings;
  bool keep_going = false;  ///< past cases that can't be converted
};

/// How far a conversion is, over all ranks.
struct ConversionProgress {
  std::int64_t done = 0;  ///< cases converted or failed in this run
  std::int64_t total = 0;
};

/// How a conversion ended.
struct ConversionResult {
  std::int64_t converted = 0;
  std::int64_t skipped = 0;         ///< were there already
  std::vector<std::string> failed;  ///< names of cases
};

/// "case-12.hdf5".
std::string case_file_name(const std::string& name);

/// Collective. Writes one HDF5 file a case to `out`, sharing the cases among the ranks. A case whose file is there
/// already, with the same settings and of the same files, is skipped. Warnings, and with `keep_going` the cases that
/// can't be converted, go to the log of rank 0, which alone calls `progress`. Throws UsageError where a setting makes
/// no sense; DataError for the first case that can't be converted unless `keep_going`, for an empty directory and for
/// files in `out` of other settings or of other files; ResourceError where writing fails. Every file in `out` is whole
/// in any event.
ConversionResult convert_cases(const Communicator& world, const Conversion& conversion,
                               const std::function<void(const ConversionProgress&)>& progress = {});

}  // namespace halograd
