#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"
#include "halograd/kernels/cuda/weight_tiles.hpp"

namespace halograd::cuda {

/// Weights [O,I,K] f32 to [O,K,I] of `type`, f32 or bf16.
void pack_weights(const Queue& queue, const WeightLayout& layout, DType type, const float* plain, void* packed);
/// Gradients back: assigned to `plain`, or added to what is there.
void unpack_weights(const Queue& queue, const WeightLayout& layout, DType type, const void* packed, float* plain,
                    bool add);

}  // namespace halograd::cuda
