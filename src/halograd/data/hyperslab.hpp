#pragma once

#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"

#include <cstddef>
#include <cstdint>

namespace halograd {

/// The bytes of `box` in memory, labels included.
std::int64_t hyperslab_bytes(const SampleLayout& layout, std::int64_t channels, const Box& box);

/// The same, of the voxels alone: where the labels begin.
std::int64_t voxel_bytes(const SampleLayout& layout, std::int64_t channels, const Box& box);

/// A dense hyperslab in memory: `box` as a SampleLayout says.
struct HyperslabView {
  Box box;
  std::byte* data = nullptr;
};
/// One that is only read.
struct HyperslabSource {
  Box box;
  const std::byte* data = nullptr;
};

/// Copies what both boxes hold, all channels and labels, as bytes.
void copy_hyperslab(const SampleLayout& layout, std::int64_t channels, const HyperslabSource& from,
                    const HyperslabView& to);

}  // namespace halograd
