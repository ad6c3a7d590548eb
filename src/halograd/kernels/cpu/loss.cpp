#include "halograd/kernels/cpu/loss.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <array>

namespace halograd::cpu {
namespace {

HALOGRAD_MULTIVERSION
double squared_error_part(const float* prediction, const float* target, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(prediction[i]) - static_cast<double>(target[i]);
    sum += difference * difference;
  }
  return sum;
}

HALOGRAD_MULTIVERSION
void gradient_part(const float* prediction, const float* target, float scale, std::int64_t count, float* dprediction) {
  for (std::int64_t i = 0; i < count; ++i) dprediction[i] = scale * (prediction[i] - target[i]);
}

// Partial sums of so many pieces, added in order: the result doesn't depend on the number of threads.
constexpr std::int64_t pieces = 64;

}  // namespace

double squared_error(DType, const void* prediction_data, const float* target, std::int64_t count) {
  const auto* const prediction = static_cast<const float*>(prediction_data);
  std::array<double, pieces> sums{};
  parallel_for(pieces, [&](std::int64_t i) {
    const std::int64_t begin = count * i / pieces;
    const std::int64_t end = count * (i + 1) / pieces;
    sums[static_cast<std::size_t>(i)] = squared_error_part(prediction + begin, target + begin, end - begin);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void squared_error_gradient(DType, const void* prediction_data, const float* target, float scale, std::int64_t count,
                            void* dprediction_data) {
  const auto* const prediction = static_cast<const float*>(prediction_data);
  auto* const dprediction = static_cast<float*>(dprediction_data);
  parallel_ranges(count, [&](std::int64_t begin, std::int64_t end, int) {
    gradient_part(prediction + begin, target + begin, scale, end - begin, dprediction + begin);
  });
}

}  // namespace halograd::cpu
