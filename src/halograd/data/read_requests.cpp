#include "halograd/data/read_requests.hpp"

#include <algorithm>

namespace halograd {
namespace {

struct Cut {
  int dimension = -1;
  std::int64_t at = 0;
};

/// The border of chunks nearest to the middle of the slowest dimension that has one inside `box`, else the middle of
/// the slowest that has more than one voxel.
Cut middle_cut(const VolumeLayout& file, const Index& origin, const Box& box) {
  for (int i = 0; file.chunked && i < 3; ++i) {
    const std::int64_t middle = (box.lo[i] + box.hi[i]) / 2;
    const std::int64_t below = (origin[i] + middle) / file.chunk[i] * file.chunk[i] - origin[i];
    const std::int64_t above = below + file.chunk[i];
    const bool first = below > box.lo[i];
    const bool second = above < box.hi[i];
    if (first && (!second || middle - below <= above - middle)) return {i, below};
    if (second) return {i, above};
  }
  for (int i = 0; i < 3; ++i) {
    if (box.extent()[i] > 1) return {i, (box.lo[i] + box.hi[i]) / 2};
  }
  return {};
}

void add_requests(const VolumeLayout& file, const Index& origin, const Box& box, std::int64_t limit,
                  std::vector<Box>& requests) {
  const std::int64_t number = std::max(file.file_element_bytes, dtype_size(file.layout.dtype));
  const bool fits = box.volume() * file.shape.channels * number <= limit;
  const Cut cut = fits ? Cut{} : middle_cut(file, origin, box);
  if (cut.dimension < 0) {
    requests.push_back(box);
    return;
  }
  Box low = box;
  Box high = box;
  low.hi[cut.dimension] = high.lo[cut.dimension] = cut.at;
  add_requests(file, origin, low, limit, requests);
  add_requests(file, origin, high, limit, requests);
}

/// How many of a dimension's `size` lie in the chunks that [lo, hi) touches.
std::int64_t touched(std::int64_t lo, std::int64_t hi, std::int64_t chunk, std::int64_t size) {
  return std::min(size, (hi + chunk - 1) / chunk * chunk) - lo / chunk * chunk;
}

}  // namespace

std::vector<Box> read_requests(const VolumeLayout& file, const Index& origin, const Box& box, std::int64_t limit) {
  std::vector<Box> requests;
  if (!box.empty()) add_requests(file, origin, box, limit, requests);
  return requests;
}

std::int64_t bytes_taken(const VolumeLayout& file, std::int64_t entry, const Index& origin, const Box& box) {
  if (box.empty()) return 0;
  const std::int64_t channel_bytes = file.shape.channels * file.file_element_bytes;
  if (!file.chunked) return box.volume() * channel_bytes;
  std::int64_t bytes = channel_bytes;  // a sample has all channels, so every chunk of them is touched
  for (int i = 0; i < 3; ++i) {
    bytes *= touched(origin[i] + box.lo[i], origin[i] + box.hi[i], file.chunk[i], file.shape.extent[i]);
  }
  if (file.stacked) bytes *= touched(entry, entry + 1, file.chunk_entries, file.entries);
  return bytes;
}

}  // namespace halograd
