#pragma once

#include "halograd/data/file_layout.hpp"
#include "halograd/tensor/box.hpp"

#include <cstdint>
#include <vector>

namespace halograd {

/// HDF5 1.10 trips over single requests of 2 GB.
constexpr std::int64_t largest_request = std::int64_t{1} << 30;

/// `box` of a sample that begins at `origin` of its file, cut into boxes of at most `limit` bytes, in memory and in the
/// file: halved along the slowest dimension, on the borders of chunks as long as there are any. Empty for an empty box.
std::vector<Box> read_requests(const VolumeLayout& file, const Index& origin, const Box& box, std::int64_t limit);

/// The bytes that one request for `box` of entry `entry` takes from the file, in its own type: those of the box, or of
/// all chunks it touches.
std::int64_t bytes_taken(const VolumeLayout& file, std::int64_t entry, const Index& origin, const Box& box);

}  // namespace halograd
