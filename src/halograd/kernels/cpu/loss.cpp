#include "halograd/kernels/cpu/loss.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <array>

namespace halograd::cpu {
namespace {

template <typename T>
HALOGRAD_MULTIVERSION double squared_error_part(const T* prediction, const float* target, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(static_cast<float>(prediction[i])) - static_cast<double>(target[i]);
    sum += difference * difference;
  }
  return sum;
}

template <typename T>
HALOGRAD_MULTIVERSION void gradient_part(const T* prediction, const float* target, float scale, std::int64_t count,
                                         T* dprediction) {
  for (std::int64_t i = 0; i < count; ++i) {
    dprediction[i] = T(scale * (static_cast<float>(prediction[i]) - target[i]));
  }
}

// Partial sums of so many pieces, added in order: the result doesn't depend on the number of threads.
constexpr std::int64_t pieces = 64;

}  // namespace

double squared_error(DType type, const void* prediction, const float* target, std::int64_t count) {
  std::array<double, pieces> sums{};
  with_activation_type(type, [&]<typename T>(T) {
    parallel_for(pieces, [&](std::int64_t i) {
      const std::int64_t begin = count * i / pieces;
      const std::int64_t end = count * (i + 1) / pieces;
      sums[static_cast<std::size_t>(i)] =
          squared_error_part(static_cast<const T*>(prediction) + begin, target + begin, end - begin);
    });
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void squared_error_gradient(DType type, const void* prediction, const float* target, float scale, std::int64_t count,
                            void* dprediction) {
  with_activation_type(type, [&]<typename T>(T) {
    parallel_ranges(count, [&](std::int64_t begin, std::int64_t end, int) {
      gradient_part(static_cast<const T*>(prediction) + begin, target + begin, scale, end - begin,
                    static_cast<T*>(dprediction) + begin);
    });
  });
}

}  // namespace halograd::cpu
