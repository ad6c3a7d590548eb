#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd::cuda {

/// cuDNN's, channels last, chosen by measurement under a limit of workspace.
std::unique_ptr<Conv3d> make_conv3d(const Queue& queue, const Conv3dDesc& desc);

}  // namespace halograd::cuda
