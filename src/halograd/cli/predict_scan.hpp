#pragma once

#include "halograd/cli/predict_input.hpp"
#include "halograd/data/group_reader.hpp"
#include "halograd/data/medical/nifti_header.hpp"

#include <array>
#include <cstddef>
#include <filesystem>
#include <vector>

namespace halograd {

/// A scan as a network sees it, W³ in canonical order (see Orientation), spread over the ranks of a spatial group.
struct Scan {
  SampleSource sample;
  std::vector<std::byte> voxels;  ///< this rank's own box, as stored
  // On rank 0 alone:
  std::vector<std::byte> whole;  ///< [W,W,W], where it was asked for or had to be made
  NiftiHeader original;          ///< of the image it comes from
  std::array<double, 3> spacing{};
};

struct ScanRequest {
  std::filesystem::path file;
  std::int64_t width = 0;
  bool whole = false;  ///< whether rank 0 needs all of it
};

/// Collective over `world`. `group`: of the ranks that get a part of it, their owned boxes; null on the others. Rank 0
/// of both is the same one. A NIfTI image (.nii, .nii.gz) is read and resampled by rank 0, which sends each its box; of
/// a converted case (.hdf5, .h5) each reads its own. Throws DataError on all ranks alike, also for a case that doesn't
/// say what image it was made from, since its labels could not be brought back.
Scan load_scan(const Communicator& world, GroupReader* group, const ScanRequest& request, const DataConfig& data);

}  // namespace halograd
