#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd::cpu {

/// Whether make_winograd_conv3d can make it: kernel 3, stride 1, up to 2 zeros before the first voxel, channels in
/// multiples of 16.
bool fits_winograd(const Conv3dDesc& desc);

/// Whether it is the faster way too, in all its calls, by the shape alone; of bf16, with casts, where the processor has
/// no matrix instructions for it.
bool prefers_winograd(const Conv3dDesc& desc);

/// A convolution of f32 activations by Winograd's F(2×4×4, 3×3×3): 4.5 multiplications an output voxel and pair of
/// channels instead of 27, done by oneDNN as matrix products. Of the U-Net's layers it takes a quarter to a third of
/// the time of oneDNN's convolutions, for rounding errors of up to 3e-6 of the result (relative, in the mean square)
/// instead of 5e-7. Beside scratch memory it holds the taps in two orders and, if that is up to 8 MB, their transforms.
std::unique_ptr<Conv3d> make_winograd_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::cpu
