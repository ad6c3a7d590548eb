#pragma once

#include "halograd/kernels/upsample.hpp"

namespace halograd::cpu {

void upsample(const UpsampleDesc& desc, const float* x, float* y);
void upsample_backward(const UpsampleDesc& desc, const float* dy, float* dx);

}  // namespace halograd::cpu
