#pragma once

#include "halograd/data/medical/label_table.hpp"
#include "halograd/data/medical/nifti_header.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace halograd {

/// Reads the voxels of a NIfTI file as they are stored, `header.voxels()` of them, i fastest, in this machine's byte
/// order, unscaled. Not collective. Throws DataError naming the file where it is cut short or damaged, or a voxel isn't
/// finite.
NiftiVoxels read_nifti_voxels(const std::filesystem::path& file, const NiftiHeader& header);

/// Reads a label map, [k,j,i] as in the file: each value, scaled, is looked up in `table`. It takes a byte a voxel, of
/// whatever type the file is. Throws DataError likewise, and where a value is not whole or not in the table.
std::vector<std::uint8_t> read_nifti_labels(const std::filesystem::path& file, const NiftiHeader& header,
                                            const LabelTable& table);

/// Writes voxels as a NIfTI file, compressed where its name ends in .gz, with the geometry of `geometry`, which must be
/// of as many voxels. Until it is whole it has another name. Not collective. Throws ResourceError.
void write_nifti(const std::filesystem::path& file, const NiftiHeader& geometry, std::span<const std::int16_t> voxels);
void write_nifti(const std::filesystem::path& file, const NiftiHeader& geometry, std::span<const std::uint8_t> voxels);

}  // namespace halograd
