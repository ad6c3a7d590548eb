#pragma once

#include "halograd/kernels/conv_timing.hpp"

#include <vector>

namespace halograd::cpu {

/// Of a convolution without margins, on the processor: no reorders count, neither of weights nor of their gradient.
std::vector<ConvTiming> time_convolution(const Conv3dDesc& desc, int repetitions);

}  // namespace halograd::cpu
