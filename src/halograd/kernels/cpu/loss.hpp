#pragma once

#include "halograd/kernels/loss.hpp"

namespace halograd::cpu {

double squared_error(const float* prediction, const float* target, std::int64_t count);
void squared_error_gradient(const float* prediction, const float* target, float scale, std::int64_t count,
                            float* dprediction);

}  // namespace halograd::cpu
