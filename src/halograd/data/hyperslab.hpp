#pragma once

#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"

#include <cstddef>
#include <cstdint>

namespace halograd {

/// The bytes of `box` as a file of this layout holds it.
std::int64_t hyperslab_bytes(const SampleLayout& layout, std::int64_t channels, const Box& box);

/// A dense hyperslab in memory: the voxels of `box`, [D,H,W,C] or [C,D,H,W] as `layout` says.
struct HyperslabView {
  Box box;
  std::byte* data = nullptr;
};

/// Copies the voxels that both boxes hold, all channels, as bytes.
void copy_hyperslab(const SampleLayout& layout, std::int64_t channels, const HyperslabView& from,
                    const HyperslabView& to);

}  // namespace halograd
