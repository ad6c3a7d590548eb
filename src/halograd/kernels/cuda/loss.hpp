#pragma once

#include "halograd/kernels/loss.hpp"

namespace halograd::cuda {

void squared_error(const Queue& queue, DType type, const void* prediction, const float* target, std::int64_t count,
                   double* sum);
void squared_error_gradient(const Queue& queue, DType type, const void* prediction, const float* target, float scale,
                            std::int64_t count, void* dprediction);

}  // namespace halograd::cuda
