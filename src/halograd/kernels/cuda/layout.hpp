#pragma once

#include "halograd/kernels/layout.hpp"

namespace halograd::cuda {

void to_channels_first(const Queue& queue, DType type, const LocalShape& shape, const void* channels_last,
                       float* channels_first);
void to_channels_last(const Queue& queue, DType type, const LocalShape& shape, const float* channels_first,
                      void* channels_last);

}  // namespace halograd::cuda
