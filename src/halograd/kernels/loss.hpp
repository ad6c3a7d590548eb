#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"

#include <cstdint>

namespace halograd {

/// sum = Σ (prediction − target)², in double, over `count` elements. `type`: of the prediction, f32 or bf16.
void squared_error(const Queue& queue, DType type, const void* prediction, const float* target, std::int64_t count,
                   double* sum);

/// dprediction = scale · (prediction − target), assigned, which may be the prediction; scale is 2 / elements of the
/// global mini-batch.
void squared_error_gradient(const Queue& queue, DType type, const void* prediction, const float* target, float scale,
                            std::int64_t count, void* dprediction);

}  // namespace halograd
