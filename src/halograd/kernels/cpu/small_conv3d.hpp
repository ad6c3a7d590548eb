#pragma once

#include "halograd/kernels/conv3d.hpp"

#include <memory>

namespace halograd::cpu {

/// The convolution as a matrix product on plain weights, so that neither they nor their gradient are ever repacked; it
/// keeps the pointer that set_weights gets. Meant for the deepest layers, 2³ voxels: there oneDNN's convolution spends
/// 5 ms of one thread a step on reorders for 1 ms of work.
std::unique_ptr<Conv3d> make_small_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::cpu
