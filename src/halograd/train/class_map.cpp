#include "halograd/train/class_map.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/parallel.hpp"

#include <atomic>
#include <cmath>

namespace halograd {

std::vector<std::uint8_t> predicted_classes(std::span<const float> logits, std::int64_t classes) {
  const std::int64_t voxels = static_cast<std::int64_t>(logits.size()) / classes;
  std::vector<std::uint8_t> map(static_cast<std::size_t>(voxels));
  std::atomic<bool> finite = true;
  parallel_ranges(voxels, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t voxel = begin; voxel < end; ++voxel) {
      const float* const row = logits.data() + voxel * classes;
      if (!std::all_of(row, row + classes, [](float value) { return std::isfinite(value); })) finite = false;
      map[static_cast<std::size_t>(voxel)] = predicted_class(row, classes);
    }
  });
  if (!finite) throw NumericalError("the network's output is not finite; expected weights that give finite numbers");
  return map;
}

std::vector<std::uint8_t> gather_classes(GroupReader& group, const OutputUnit& output,
                                         std::span<const std::uint8_t> part) {
  const Communicator& ranks = group.group();
  const Box mine = output.leads ? output.own : Box{};
  std::vector<Box> held(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, sizeof mine, held.data());
  std::vector<Box> wanted(held.size());
  wanted.front() = Box::whole(output.shape.extent);
  std::vector<std::uint8_t> map;
  if (ranks.rank() == 0) map.resize(static_cast<std::size_t>(wanted.front().volume()));
  group.redistribute({.dtype = DType::u8}, held, std::as_bytes(part).data(), wanted,
                     std::as_writable_bytes(std::span(map)).data());
  return map;
}

}  // namespace halograd
