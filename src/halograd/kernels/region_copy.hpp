#pragma once

#include "halograd/kernels/backend.hpp"
#include "halograd/tensor/box.hpp"

namespace halograd {

/// Moves the voxels `region` from one dense NDHWC buffer to another: [N, box, C] each, boxes in global indices. A
/// message is a buffer too, so this packs and unpacks halos of any width, and copies between partitions.
struct RegionCopy {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  Box from;
  Box to;
  Box region;  ///< inside both
};

void copy_region(Backend backend, const RegionCopy& copy, const float* from, float* to);
/// Adds instead: gradients that come home to their owner.
void add_region(Backend backend, const RegionCopy& copy, const float* from, float* to);

}  // namespace halograd
