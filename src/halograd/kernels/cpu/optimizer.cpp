#include "halograd/kernels/cpu/optimizer.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"
#include "halograd/kernels/optimizer_math.hpp"

#include <cmath>

namespace halograd::cpu {
namespace {

HALOGRAD_MULTIVERSION
void adam_part(const AdamConstants& adam, const float* __restrict g, float* __restrict w, float* __restrict m,
               float* __restrict v, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) adam_element(adam, g[i], w[i], m[i], v[i]);
}

HALOGRAD_MULTIVERSION
void sgd_part(const SgdConstants& sgd, const float* __restrict g, float* __restrict w, float* __restrict velocity,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sgd_element(sgd, g[i], w[i], velocity[i]);
}

}  // namespace

void adam_update(const AdamStep& adam, const float* g, float* w, float* m, float* v, std::int64_t count) {
  const auto step = static_cast<double>(adam.step);
  const AdamConstants constants = adam_constants(adam, std::pow(adam.beta1, step), std::pow(adam.beta2, step));
  parallel_ranges(count, [&](std::int64_t begin, std::int64_t end, int) {
    adam_part(constants, g + begin, w + begin, m + begin, v + begin, end - begin);
  });
}

void sgd_update(const SgdStep& sgd, const float* g, float* w, float* velocity, std::int64_t count) {
  const SgdConstants constants = sgd_constants(sgd);
  parallel_ranges(count, [&](std::int64_t begin, std::int64_t end, int) {
    sgd_part(constants, g + begin, w + begin, velocity + begin, end - begin);
  });
}

}  // namespace halograd::cpu
