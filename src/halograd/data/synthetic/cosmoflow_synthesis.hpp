#pragma once

#include <filesystem>
#include <functional>

#include "halograd/data/synthetic/universe.hpp"

namespace halograd {

/// A directory of synthetic universes to make.
struct CosmoflowSynthesis {
  std::filesystem::path directory;  ///< made where it doesn't exist
  std::int64_t count = 0;           ///< universes, over all ranks
  std::int64_t first = 0;           ///< index of the first: [first, first + count) are made
  UniverseOptions universe;
  std::int64_t rank = 0;  ///< this process makes the universes i with i % ranks = rank
  std::int64_t ranks = 1;
};

/// Told after each file of this process.
struct SynthesisProgress {
  std::int64_t index = 0;  ///< of the universe just written
  std::int64_t done = 0;   ///< files written by this process so far
  std::int64_t total = 0;  ///< files this process writes in all
  std::filesystem::path file;
};

/// Makes this rank's share of the universes of `synthesis` and writes one file each, `universe_00012.hdf5` and so on.
///
/// Universe i of a seed is the same whatever the count and the ranks. A file that is there already is replaced. Not
/// collective. Throws UsageError where an option makes no sense, before anything is written; DataError where the
/// directory can't be made or written; ResourceError where writing fails.
void synthesize_cosmoflow(const CosmoflowSynthesis& synthesis,
                          const std::function<void(const SynthesisProgress&)>& progress = {});

}  // namespace halograd
