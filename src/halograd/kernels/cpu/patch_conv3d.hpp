#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd::cpu {

/// Whether the windows tile the input (stride = kernel, no padding, nothing left over), as those of a U-Net's
/// deconvolutions do.
bool is_patchwise(const Conv3dDesc& desc);

/// A convolution whose windows tile the input, as matrix products of [voxels, O] with [O, kernel·I] over blocks of
/// voxels small enough for the cache, in between copied to or from the input buffer. Of 128 channels and 32³ windows
/// oneDNN's own strided convolutions take 3 times as long in backward-weights and 1.3 times in backward-data; of few
/// windows, and forward, both are alike. In bf16 products are of rounded weights.
std::unique_ptr<Conv3d> make_patch_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::cpu
