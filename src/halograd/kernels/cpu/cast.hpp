#pragma once

#include "halograd/core/bf16.hpp"

#include <cstdint>

namespace halograd::cpu {

/// to[i] = from[i], as f32 or rounded to bf16, spread over the threads.
void widen(const Bf16* from, std::int64_t count, float* to);
void narrow(const float* from, std::int64_t count, Bf16* to);

/// sums[i] += terms[i], spread over the threads.
void accumulate(const float* terms, std::int64_t count, float* sums);

}  // namespace halograd::cpu
