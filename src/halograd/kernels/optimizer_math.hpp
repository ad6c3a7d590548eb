#pragma once

#include "halograd/kernels/optimizer.hpp"

#include <cmath>

namespace halograd {

// What one parameter does in a step of an optimiser, in float, the same on host and device.

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

/// `power1`: β₁ᵗ, `power2`: β₂ᵗ.
constexpr AdamConstants adam_constants(const AdamStep& adam, double power1, double power2) {
  return {.keep_mean = static_cast<float>(adam.beta1),
          .keep_square = static_cast<float>(adam.beta2),
          .new_mean = static_cast<float>(1 - adam.beta1),
          .new_square = static_cast<float>(1 - adam.beta2),
          .rate = static_cast<float>(adam.learning_rate / (1 - power1)),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - power2)),
          .epsilon = static_cast<float>(adam.epsilon)};
}

constexpr void adam_element(const AdamConstants& adam, float g, float& w, float& m, float& v) {
  m = adam.keep_mean * m + adam.new_mean * g;
  v = adam.keep_square * v + adam.new_square * (g * g);
  w -= adam.rate * m / (std::sqrt(v) * adam.root_scale + adam.epsilon);
}

struct SgdConstants {
  float rate;
  float momentum;
};

constexpr SgdConstants sgd_constants(const SgdStep& sgd) {
  return {static_cast<float>(sgd.learning_rate), static_cast<float>(sgd.momentum)};
}

constexpr void sgd_element(const SgdConstants& sgd, float g, float& w, float& velocity) {
  velocity = sgd.momentum * velocity + g;
  w -= sgd.rate * velocity;
}

}  // namespace halograd
