#pragma once

#include "halograd/kernels/layout.hpp"

/// These tensors are small: one implementation serves both of the processor's backends.
namespace halograd::reference {

void to_channels_first(DType type, const LocalShape& shape, const void* channels_last, float* channels_first);
void to_channels_last(DType type, const LocalShape& shape, const float* channels_first, void* channels_last);

}  // namespace halograd::reference
