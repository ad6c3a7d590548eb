#include "halograd/data/read_plan.hpp"

#include "halograd/tensor/partition.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace halograd {
namespace {

constexpr std::int64_t short_run = 64 * 1024;  // bytes; below it seeking outweighs reading

using Cuts = std::array<std::vector<std::int64_t>, 3>;

/// What is only read whole, in the file's own grid: a chunk, or a depth plane of a contiguous file.
Extent unit_of(const VolumeLayout& file) {
  return file.chunked ? file.chunk : Extent{1, file.shape.extent.h, file.shape.extent.w};
}

/// Where a sample may be cut so that no unit is shared: the units' borders, in the sample's own indices.
Cuts unit_borders(const Extent& unit, const Index& origin, const Extent& sample) {
  Cuts borders;
  for (int i = 0; i < 3; ++i) {
    auto& list = borders[static_cast<std::size_t>(i)];
    list.push_back(0);
    for (std::int64_t at = unit[i] - origin[i] % unit[i]; at < sample[i]; at += unit[i]) list.push_back(at);
    list.push_back(sample[i]);
  }
  return borders;
}

/// Near-equal parts of whole units.
Partition joined(const Cuts& borders, const Extent& parts) {
  Cuts cuts;
  for (int i = 0; i < 3; ++i) {
    const auto& list = borders[static_cast<std::size_t>(i)];
    const auto units = static_cast<std::int64_t>(list.size()) - 1;
    for (std::int64_t part = 0; part <= parts[i]; ++part) {
      const std::int64_t unit = part * (units / parts[i]) + std::min(part, units % parts[i]);
      cuts[static_cast<std::size_t>(i)].push_back(list[static_cast<std::size_t>(unit)]);
    }
  }
  return Partition(std::move(cuts));
}

/// Part by part to the ranks, width fastest; those left over get none.
std::vector<Box> boxes_of(const Partition& partition, std::size_t ranks) {
  const Extent parts = partition.parts();
  std::vector<Box> boxes(ranks);
  for (std::int64_t i = 0; i < parts.volume(); ++i) {
    boxes[static_cast<std::size_t>(i)] = partition.box({i / (parts.h * parts.w), i / parts.w % parts.h, i % parts.w});
  }
  return boxes;
}

std::int64_t voxels_to_pass_on(const std::vector<Box>& read, const std::vector<Box>& owned) {
  std::int64_t voxels = 0;
  for (std::size_t r = 0; r < read.size(); ++r) voxels += read[r].volume() - read[r].intersect(owned[r]).volume();
  return voxels;
}

std::vector<Box> blocks(const Cuts& borders, const std::vector<Box>& owned) {
  const auto ranks = static_cast<std::int64_t>(owned.size());
  Extent units;
  for (int i = 0; i < 3; ++i) units[i] = static_cast<std::int64_t>(borders[static_cast<std::size_t>(i)].size()) - 1;
  const auto at_most = [](std::int64_t units_there, std::int64_t parts) { return (units_there + parts - 1) / parts; };

  std::vector<Box> best;
  std::int64_t best_units = std::numeric_limits<std::int64_t>::max();
  std::int64_t best_moved = best_units;
  // Many parts in depth first, then in height: of equal splits the first one stays.
  for (std::int64_t d = std::min(units.d, ranks); d > 0; --d) {
    for (std::int64_t h = std::min(units.h, ranks / d); h > 0; --h) {
      for (std::int64_t w = std::min(units.w, ranks / (d * h)); w > 0; --w) {
        const std::int64_t largest = at_most(units.d, d) * at_most(units.h, h) * at_most(units.w, w);
        if (largest > best_units) break;  // fewer parts in width only make it larger
        std::vector<Box> boxes = boxes_of(joined(borders, {d, h, w}), owned.size());
        const std::int64_t moved = voxels_to_pass_on(boxes, owned);
        if (largest == best_units && moved >= best_moved) continue;
        best = std::move(boxes);
        best_units = largest;
        best_moved = moved;
      }
    }
  }
  return best;
}

/// The chunks a box touches, counted in chunks.
Box chunks_touched(const VolumeLayout& file, const Index& origin, const Box& box) {
  Box chunks;
  for (int i = 0; i < 3; ++i) {
    chunks.lo[i] = (origin[i] + box.lo[i]) / file.chunk[i];
    chunks.hi[i] = (origin[i] + box.hi[i] - 1) / file.chunk[i] + 1;
  }
  return chunks;
}

bool chunks_shared(const VolumeLayout& file, const Index& origin, const std::vector<Box>& owned) {
  std::vector<Box> touched;
  for (const Box& box : owned) {
    if (box.empty()) continue;
    const Box chunks = chunks_touched(file, origin, box);
    const auto shares = [&](const Box& other) { return !other.intersect(chunks).empty(); };
    if (std::ranges::any_of(touched, shares)) return true;
    touched.push_back(chunks);
  }
  return false;
}

/// Whether a box's runs in the file are short though a whole plane of the sample would have longer ones.
bool run_is_short(const VolumeLayout& file, const Extent& sample, const Box& box) {
  const Extent e = box.extent();
  const std::int64_t width = file.shape.extent.w;
  const std::int64_t voxel = file.file_element_bytes * (file.layout.channels_first ? 1 : file.shape.channels);
  if (e.w < sample.w) return e.w * voxel < short_run;
  if (e.h < sample.h && sample.w == width) return e.h * width * voxel < short_run;
  return false;
}

}  // namespace

const char* driver_name(ReadDriver driver) {
  switch (driver) {
    case ReadDriver::posix: return "posix";
    case ReadDriver::mpi_independent: return "mpi-independent";
    case ReadDriver::mpi_collective: return "mpi-collective";
  }
  return "unknown";
}

const char* shape_name(ReadShape shape) {
  switch (shape) {
    case ReadShape::boxes: return "own boxes";
    case ReadShape::blocks: return "blocks";
    case ReadShape::sample: return "whole samples";
  }
  return "unknown";
}

std::vector<Box> boxes_to_read(ReadShape shape, const VolumeLayout& file, const Index& origin, const Extent& sample,
                               const std::vector<Box>& owned) {
  switch (shape) {
    case ReadShape::boxes: break;
    case ReadShape::blocks: return blocks(unit_borders(unit_of(file), origin, sample), owned);
    case ReadShape::sample: {
      std::vector<Box> boxes(owned.size());
      boxes.front() = Box::whole(sample);
      return boxes;
    }
  }
  return owned;
}

bool boxes_are_slow(const VolumeLayout& file, const Index& origin, const Extent& sample,
                    const std::vector<Box>& owned) {
  if (file.chunked) return chunks_shared(file, origin, owned);
  return std::ranges::any_of(owned, [&](const Box& box) { return !box.empty() && run_is_short(file, sample, box); });
}

}  // namespace halograd
