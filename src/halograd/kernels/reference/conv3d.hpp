#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd::reference {

std::unique_ptr<Conv3d> make_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::reference
