#pragma once

#include "halograd/kernels/optimizer.hpp"

namespace halograd::reference {

void adam_update(const AdamStep& adam, const float* g, float* w, float* m, float* v, std::int64_t count);
void sgd_update(const SgdStep& sgd, const float* g, float* w, float* velocity, std::int64_t count);

}  // namespace halograd::reference
