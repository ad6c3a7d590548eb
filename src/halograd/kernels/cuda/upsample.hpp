#pragma once

#include "halograd/kernels/upsample.hpp"

namespace halograd::cuda {

void upsample(const Queue& queue, const UpsampleDesc& desc, const void* x, void* y);
void upsample_backward(const Queue& queue, const UpsampleDesc& desc, const void* dy, void* dx);

}  // namespace halograd::cuda
