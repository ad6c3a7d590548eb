#pragma once

#include "halograd/device/queue.hpp"

#include <cstdint>

namespace halograd {

/// Kingma and Ba 2014, algorithm 1. `step` counts from 1. Lies in memory of the device, so that a step that was
/// recorded once can be replayed with other values.
struct AdamStep {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  std::int64_t step = 1;
};

/// w −= rate · m̂ / (√v̂ + ε), with m and v updated from the gradient g; [count] each.
void adam_update(const Queue& queue, const AdamStep* adam, const float* g, float* w, float* m, float* v,
                 std::int64_t count);

struct SgdStep {
  double learning_rate = 1e-2;
  double momentum = 0.9;
};

/// velocity = momentum · velocity + g;  w −= rate · velocity (PyTorch's convention); [count] each.
void sgd_update(const Queue& queue, const SgdStep* sgd, const float* g, float* w, float* velocity, std::int64_t count);

}  // namespace halograd
