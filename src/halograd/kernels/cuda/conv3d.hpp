#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd::cuda {

/// Workspace that a convolution may take for speed, in bytes. More only where no engine does with less.
constexpr std::int64_t workspace_limit = std::int64_t{1} << 30;

/// cuDNN's, channels last, chosen by measurement under a limit of workspace.
std::unique_ptr<Conv3d> make_conv3d(const Queue& queue, const Conv3dDesc& desc);

}  // namespace halograd::cuda
