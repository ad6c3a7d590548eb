#pragma once

#include "halograd/data/medical/nifti_header.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace halograd {

/// A made-up CT scan with its label map, as a file holds them.
struct SyntheticScan {
  NiftiHeader geometry;
  std::vector<std::int16_t> voxels;  ///< Hounsfield units, i fastest
  std::vector<std::uint8_t> labels;  ///< 0 background, 1 organ, 2 lesion
};

/// Scan `index` of a seed: a body with an organ and lesions in it (see Anatomy), `width` voxels across, 0.6 to 1.4
/// times as many slices, blurred, with noise of 15 to 20 units. Spacing and the order and direction of axes differ from
/// scan to scan. The same seed, width and index give the same scan.
SyntheticScan make_scan(std::int64_t width, std::uint64_t seed, std::int64_t index);

/// A directory of scans to make.
struct LitsSynthesis {
  std::filesystem::path directory;  ///< made where it doesn't exist
  std::int64_t count = 0;           ///< scans, over all ranks
  std::int64_t first = 0;           ///< index of the first
  std::int64_t width = 0;
  std::uint64_t seed = 1;
  std::int64_t rank = 0;  ///< this process makes the scans i with i % ranks = rank
  std::int64_t ranks = 1;
};

/// Makes this rank's share and writes `volume-N.nii.gz` and `segmentation-N.nii.gz`, replacing what is there;
/// `progress(done, total)` is told after each. Not collective. Throws UsageError where an option makes no sense, before
/// anything is written; DataError where the directory can't be made; ResourceError where writing fails.
void synthesize_lits(const LitsSynthesis& synthesis,
                     const std::function<void(std::int64_t done, std::int64_t total)>& progress = {});

}  // namespace halograd
