#pragma once

#include "halograd/kernels/cuda/flat_range.hpp"
#include "halograd/kernels/optimizer_math.hpp"

namespace halograd::cuda {

/// base^exponent by squaring: the same on host and device, and no call of pow.
constexpr double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

/// What one thread does with an item of a flat range of parameters.
struct AdamRange {
  using Step = AdamStep;
  using Constants = AdamConstants;

  FlatRange<4> range;
  const float* g;
  float* w;
  float* m;
  float* v;

  AdamRange(const float* gradient, float* weight, float* mean, float* square, std::int64_t count)
      : range(count, {{gradient, 4}, {weight, 4}, {mean, 4}, {square, 4}}),
        g(gradient),
        w(weight),
        m(mean),
        v(square) {}

  static constexpr Constants constants(const Step& step) {
    return adam_constants(step, power(step.beta1, step.step), power(step.beta2, step.step));
  }
  constexpr void operator()(std::int64_t item, const Constants& adam) const {
    const std::int64_t at = range.element(item);
    if (!range.is_packet(item)) return adam_element(adam, g[at], w[at], m[at], v[at]);
    const Packet<float, 4> gs = load<4>(g + at);
    Packet<float, 4> ws = load<4>(w + at);
    Packet<float, 4> ms = load<4>(m + at);
    Packet<float, 4> vs = load<4>(v + at);
    for (std::size_t i = 0; i < 4; ++i) adam_element(adam, gs.values[i], ws.values[i], ms.values[i], vs.values[i]);
    store(ws, w + at);
    store(ms, m + at);
    store(vs, v + at);
  }
};

struct SgdRange {
  using Step = SgdStep;
  using Constants = SgdConstants;

  FlatRange<4> range;
  const float* g;
  float* w;
  float* velocity;

  SgdRange(const float* gradient, float* weight, float* speed, std::int64_t count)
      : range(count, {{gradient, 4}, {weight, 4}, {speed, 4}}), g(gradient), w(weight), velocity(speed) {}

  static constexpr Constants constants(const Step& step) { return sgd_constants(step); }
  constexpr void operator()(std::int64_t item, const Constants& sgd) const {
    const std::int64_t at = range.element(item);
    if (!range.is_packet(item)) return sgd_element(sgd, g[at], w[at], velocity[at]);
    const Packet<float, 4> gs = load<4>(g + at);
    Packet<float, 4> ws = load<4>(w + at);
    Packet<float, 4> vs = load<4>(velocity + at);
    for (std::size_t i = 0; i < 4; ++i) sgd_element(sgd, gs.values[i], ws.values[i], vs.values[i]);
    store(ws, w + at);
    store(vs, velocity + at);
  }
};

}  // namespace halograd::cuda
