#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd::cpu {

/// Whether make_winograd_conv3d can do it: kernel 3, stride 1, at most 2 zeros below, channels in multiples of 16.
bool fits_winograd(const Conv3dDesc& desc);

/// A convolution with an eighth of the multiplications.
std::unique_ptr<Conv3d> make_winograd_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::cpu
