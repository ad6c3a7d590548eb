#pragma once

#include "halograd/kernels/conv3d.hpp"

#include <memory>

namespace halograd::cpu {

/// oneDNN's convolution; weights are held in the formats it chooses. Throws ResourceError where it has none for the
/// shape.
std::unique_ptr<Conv3d> make_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::cpu
