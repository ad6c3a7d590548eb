#include "halograd/kernels/cpu/optimizer.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <cmath>

namespace halograd::cpu {
namespace {

/// A step's constants, worked out in double. With c₁ = 1 − β₁ᵗ and c₂ = 1 − β₂ᵗ the update rate · (m/c₁) / (√(v/c₂) +
/// ε) is `rate · m / (√v · root_scale + ε)`.
struct AdamConstants {
  float keep_mean;
  float keep_square;
  float new_mean;
  float new_square;
  float rate;
  float root_scale;
  float epsilon;
};

AdamConstants constants_of(const AdamStep& adam) {
  const double mean_correction = 1 - std::pow(adam.beta1, static_cast<double>(adam.step));
  const double square_correction = 1 - std::pow(adam.beta2, static_cast<double>(adam.step));
  return {.keep_mean = static_cast<float>(adam.beta1),
          .keep_square = static_cast<float>(adam.beta2),
          .new_mean = static_cast<float>(1 - adam.beta1),
          .new_square = static_cast<float>(1 - adam.beta2),
          .rate = static_cast<float>(adam.learning_rate / mean_correction),
          .root_scale = static_cast<float>(1 / std::sqrt(square_correction)),
          .epsilon = static_cast<float>(adam.epsilon)};
}

HALOGRAD_MULTIVERSION
void adam_part(const AdamConstants& adam, const float* __restrict g, float* __restrict w, float* __restrict m,
               float* __restrict v, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float mean = adam.keep_mean * m[i] + adam.new_mean * g[i];
    const float square = adam.keep_square * v[i] + adam.new_square * (g[i] * g[i]);
    m[i] = mean;
    v[i] = square;
    w[i] -= adam.rate * mean / (std::sqrt(square) * adam.root_scale + adam.epsilon);
  }
}

HALOGRAD_MULTIVERSION
void sgd_part(float rate, float momentum, const float* __restrict g, float* __restrict w, float* __restrict velocity,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float speed = momentum * velocity[i] + g[i];
    velocity[i] = speed;
    w[i] -= rate * speed;
  }
}

}  // namespace

void adam_update(const AdamStep& adam, const float* g, float* w, float* m, float* v, std::int64_t count) {
  const AdamConstants constants = constants_of(adam);
  parallel_ranges(count, [&](std::int64_t begin, std::int64_t end, int) {
    adam_part(constants, g + begin, w + begin, m + begin, v + begin, end - begin);
  });
}

void sgd_update(const SgdStep& sgd, const float* g, float* w, float* velocity, std::int64_t count) {
  const float rate = static_cast<float>(sgd.learning_rate);
  const float momentum = static_cast<float>(sgd.momentum);
  parallel_ranges(count, [&](std::int64_t begin, std::int64_t end, int) {
    sgd_part(rate, momentum, g + begin, w + begin, velocity + begin, end - begin);
  });
}

}  // namespace halograd::cpu
