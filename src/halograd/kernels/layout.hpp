#pragma once

#include "halograd/tensor/shape.hpp"

namespace halograd {

/// Channels-last to channels-first, sample by sample: [N,D,H,W,C] to [N,C,D,H,W]. Dense layers number their inputs in
/// the latter order, as checkpoints do; these tensors are small, so one implementation serves every backend.
void to_channels_first(const LocalShape& shape, const float* channels_last, float* channels_first);
void to_channels_last(const LocalShape& shape, const float* channels_first, float* channels_last);

}  // namespace halograd
