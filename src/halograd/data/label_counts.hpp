#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace halograd {

/// How many voxels have each label.
using LabelCounts = std::array<std::int64_t, 256>;

/// Counts the labels of a file's `segmentation` (u8), a few MiB at a time; nothing where it has none. Not collective;
/// any thread. Throws DataError naming the file where it cannot be read.
std::optional<LabelCounts> count_labels(const std::string& file);

/// "labels: 0 in 99.2 % of the voxels (16642998), 1 in 0.8 % (134218)".
std::string to_text(const LabelCounts& counts);

}  // namespace halograd
