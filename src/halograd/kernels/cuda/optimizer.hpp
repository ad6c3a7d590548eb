#pragma once

#include "halograd/kernels/optimizer.hpp"

namespace halograd::cuda {

void adam_update(const Queue& queue, const AdamStep* adam, const float* g, float* w, float* m, float* v,
                 std::int64_t count);
void sgd_update(const Queue& queue, const SgdStep* sgd, const float* g, float* w, float* velocity, std::int64_t count);

}  // namespace halograd::cuda
