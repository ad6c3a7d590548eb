#pragma once

#include "halograd/kernels/upsample.hpp"

namespace halograd::cpu {

void upsample(const UpsampleDesc& desc, const void* x, void* y);
void upsample_backward(const UpsampleDesc& desc, const void* dy, void* dx);

}  // namespace halograd::cpu
