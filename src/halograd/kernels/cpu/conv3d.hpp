#pragma once

#include "halograd/kernels/conv3d.hpp"

#include <memory>

namespace halograd::cpu {

/// oneDNN's convolution, or one of ours on its matrix products where that is faster. In bf16, on a processor without
/// instructions for it, the kernels for f32 with casts of the activations; implementations() says so. Throws
/// ResourceError where oneDNN has none for the shape, UsageError for tf32.
std::unique_ptr<Conv3d> make_conv3d(const Conv3dDesc& desc);

}  // namespace halograd::cpu
