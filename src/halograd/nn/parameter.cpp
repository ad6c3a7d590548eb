#include "halograd/nn/parameter.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace halograd {
namespace {

/// Box and Muller 1958: one normal number from two uniform ones, the first in (0, 1].
double normal(const RandomStream& stream, std::uint64_t index) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - stream.uniform53(2 * index)));
  return radius * std::cos(2.0 * std::numbers::pi * stream.uniform53(2 * index + 1));
}

}  // namespace

std::int64_t ParameterSpec::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

void initialize(const ParameterSpec& spec, std::uint32_t index, std::uint64_t seed, float* values) {
  if (spec.initializer == Initializer::constant) {
    std::fill_n(values, spec.elements(), static_cast<float>(spec.value));
    return;
  }
  const RandomStream stream = random_stream(seed, RandomPurpose::initial_weights, index);
  if (spec.initializer == Initializer::he_normal) {
    const double deviation = std::sqrt(2.0 / spec.fan_in);
    parallel_for(spec.elements(), [&](std::int64_t i) {
      values[i] = static_cast<float>(deviation * normal(stream, static_cast<std::uint64_t>(i)));
    });
    return;
  }
  const double limit = std::sqrt(6.0 / (spec.fan_in + spec.fan_out));
  parallel_for(spec.elements(), [&](std::int64_t i) {
    values[i] = static_cast<float>((2.0 * stream.uniform(static_cast<std::uint64_t>(i)) - 1.0) * limit);
  });
}

}  // namespace halograd
