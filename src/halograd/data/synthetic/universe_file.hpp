#pragma once

#include <filesystem>
#include <string>

#include "halograd/data/synthetic/universe.hpp"

namespace halograd {

/// "universe_00012.hdf5".
std::string universe_file_name(std::int64_t index);

/// Writes `universe` to `file` (replaced where it exists) in the layout of the CosmoFlow set: `full` [W,W,W,4] unsigned
/// 16-bit, contiguous; `unitPar`, `physPar` (Ω_M, σ8, n_s, H0) and `redshifts` [4] 32-bit float; `namePar` [4] strings;
/// the box, seed, index and particles per voxel as attributes.
///
/// It is made in memory, which takes as much again as the counts, and written under another name first, so that `file`
/// is never half a file. The same universe gives the same bytes. Not collective. Throws DataError where the file can't
/// be made and ResourceError where memory or writing fails, as on a full disk; then nothing is left of it.
void write_universe(const Universe& universe, const std::filesystem::path& file);

}  // namespace halograd
