#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"
#include "halograd/tensor/shape.hpp"

namespace halograd {

/// Channels-last to channels-first, sample by sample: [N,D,H,W,C] to [N,C,D,H,W]. Dense layers number their inputs in
/// the latter order, as checkpoints do, and compute in f32. `type`: of the channels-last side, f32 or bf16.
void to_channels_first(const Queue& queue, DType type, const LocalShape& shape, const void* channels_last,
                       float* channels_first);
void to_channels_last(const Queue& queue, DType type, const LocalShape& shape, const float* channels_first,
                      void* channels_last);

}  // namespace halograd
