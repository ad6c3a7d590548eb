#pragma once

#include "halograd/kernels/backend.hpp"

#include <cstdint>

namespace halograd {

/// Σ (prediction − target)², in double, over `count` elements.
double squared_error(Backend backend, const float* prediction, const float* target, std::int64_t count);

/// dprediction = scale · (prediction − target), assigned; scale is 2 / elements of the global mini-batch.
void squared_error_gradient(Backend backend, const float* prediction, const float* target, float scale,
                            std::int64_t count, float* dprediction);

}  // namespace halograd
