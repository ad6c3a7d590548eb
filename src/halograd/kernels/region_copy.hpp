#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"
#include "halograd/tensor/layout.hpp"

namespace halograd {

/// Moves the voxels `region` from one NDHWC buffer to another. A message is a buffer too, so this packs and unpacks
/// halos of any width, copies between partitions, and into and out of channel slices.
struct RegionCopy {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  VoxelLayout from;
  VoxelLayout to;
  Box region;               ///< inside both
  DType type = DType::f32;  ///< of both buffers: f32 or bf16
};

void copy_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to);
/// Adds instead: gradients that come home to their owner, or from several consumers of a tensor.
void add_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to);

}  // namespace halograd
