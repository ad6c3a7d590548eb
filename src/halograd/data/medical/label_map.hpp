#pragma once

#include "halograd/data/medical/nifti_header.hpp"

#include <cstdint>
#include <filesystem>
#include <span>

namespace halograd {

/// Brings a label map back to the image it was made for: each voxel of `original` gets the nearest of `labels`
/// ([W,W,W], canonical order). Returns them in the file's own order, i fastest.
std::vector<std::uint8_t> restore_labels(std::span<const std::uint8_t> labels, std::int64_t width,
                                         const NiftiHeader& original);

/// Writes them as a NIfTI file (unsigned 8-bit; compressed where its name ends in .gz) of the shape, voxel order and
/// geometry of `original`, and returns them. Until it is whole it has another name. Not collective. Throws UsageError
/// where the name is not .nii or .nii.gz, ResourceError where it can't be written.
std::vector<std::uint8_t> write_label_map(const std::filesystem::path& file, std::span<const std::uint8_t> labels,
                                          std::int64_t width, const NiftiHeader& original);

}  // namespace halograd
