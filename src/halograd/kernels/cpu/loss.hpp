#pragma once

#include "halograd/kernels/loss.hpp"

namespace halograd::cpu {

double squared_error(DType type, const void* prediction, const float* target, std::int64_t count);
void squared_error_gradient(DType type, const void* prediction, const float* target, float scale, std::int64_t count,
                            void* dprediction);

}  // namespace halograd::cpu
