#pragma once

#include "halograd/device/queue.hpp"

#include <cstdint>

namespace halograd::cuda {

/// db[o] = Σ over the samples, in order and in double, of dy [N,O].
void bias_gradient(const Queue& queue, std::int64_t samples, std::int64_t features, const float* dy, float* db);

}  // namespace halograd::cuda
