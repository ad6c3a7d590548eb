#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/device/algorithm_record.hpp"

#include <filesystem>

namespace halograd {

/// Collective. Reads the algorithms that an earlier run on this grid found the fastest, before kernels are made, so
/// that this one has the same bits: each rank its own, then those of others for shapes it has not met. No file: nothing
/// is known yet. Throws DataError on all ranks alike where the file can't be understood.
void load_algorithms(const Communicator& world, const std::filesystem::path& file,
                     AlgorithmRecord& record = algorithm_record());

/// Collective. Writes what each rank knows by now; no file where nothing was chosen by timing (as on processors).
/// Throws ResourceError on all ranks alike.
void save_algorithms(const Communicator& world, const std::filesystem::path& file,
                     const AlgorithmRecord& record = algorithm_record());

}  // namespace halograd
