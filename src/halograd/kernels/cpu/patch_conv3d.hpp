#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd::cpu {

/// Whether the windows tile the input (stride = kernel, no padding, nothing left over), as those of a U-Net's
/// deconvolutions do.
bool is_patchwise(const Conv3dDesc& desc);

/// A convolution whose windows tile the input, as matrix products of [voxels, O] with [O, kernel·I] over blocks of
/// voxels small enough for the cache, in between copied to or from the input buffer. oneDNN's own strided convolutions
/// take 1.4 (forward) to 4 times (backward-weights) as long.
std::unique_ptr<Conv3d> make_patch_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::cpu
