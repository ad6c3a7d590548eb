#include "halograd/nn/parameter.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/core/random.hpp"

#include <algorithm>
#include <cmath>

namespace halograd {
namespace {

double glorot_limit(const std::vector<std::int64_t>& dims) {
  std::int64_t receptive = 1;
  for (std::size_t i = 2; i < dims.size(); ++i) receptive *= dims[i];
  return std::sqrt(6.0 / static_cast<double>((dims[0] + dims[1]) * receptive));
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
  const double limit = glorot_limit(spec.dims);
  parallel_for(spec.elements(), [&](std::int64_t i) {
    values[i] = static_cast<float>((2.0 * stream.uniform(static_cast<std::uint64_t>(i)) - 1.0) * limit);
  });
}

}  // namespace halograd
