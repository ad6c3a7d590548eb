#include "halograd/kernels/reference/optimizer.hpp"

#include <cmath>

namespace halograd::reference {

void adam_update(const AdamStep& adam, const float* g, float* w, float* m, float* v, std::int64_t count) {
  const double mean_correction = 1 - std::pow(adam.beta1, static_cast<double>(adam.step));
  const double square_correction = 1 - std::pow(adam.beta2, static_cast<double>(adam.step));
  for (std::int64_t i = 0; i < count; ++i) {
    const double gradient = static_cast<double>(g[i]);
    const double mean = adam.beta1 * static_cast<double>(m[i]) + (1 - adam.beta1) * gradient;
    const double square = adam.beta2 * static_cast<double>(v[i]) + (1 - adam.beta2) * gradient * gradient;
    const double step = (mean / mean_correction) / (std::sqrt(square / square_correction) + adam.epsilon);
    m[i] = static_cast<float>(mean);
    v[i] = static_cast<float>(square);
    w[i] = static_cast<float>(static_cast<double>(w[i]) - adam.learning_rate * step);
  }
}

void sgd_update(const SgdStep& sgd, const float* g, float* w, float* velocity, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double speed = sgd.momentum * static_cast<double>(velocity[i]) + static_cast<double>(g[i]);
    velocity[i] = static_cast<float>(speed);
    w[i] = static_cast<float>(static_cast<double>(w[i]) - sgd.learning_rate * speed);
  }
}

}  // namespace halograd::reference
