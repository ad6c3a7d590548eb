#pragma once

#include "halograd/kernels/cuda/flat_range.hpp"
#include "halograd/kernels/cuda/reduction.hpp"

#include <cstdint>

namespace halograd::cuda {

/// Blocks that sum `count` squares: one as long as it takes no longer than a second launch would.
constexpr std::int64_t squared_error_pieces(std::int64_t count) {
  return count <= 32 * sum_threads ? 1 : pieces_for(count, 1, 1, most_pieces);
}

template <typename T>
struct SquaredError {
  const T* prediction = nullptr;
  const float* target = nullptr;
  constexpr double operator()(std::int64_t i) const {
    const double difference = static_cast<double>(static_cast<float>(prediction[i])) - static_cast<double>(target[i]);
    return difference * difference;
  }
};

template <typename T>
struct SquaredErrorGradient {
  FlatRange<4> range;
  const T* prediction = nullptr;
  const float* target = nullptr;
  float scale = 0;
  T* gradient = nullptr;  ///< which may be the prediction

  SquaredErrorGradient(const T* predicted, const float* wanted, float factor, std::int64_t count, T* result)
      : range(count, {{predicted, sizeof(T)}, {wanted, sizeof(float)}, {result, sizeof(T)}}),
        prediction(predicted),
        target(wanted),
        scale(factor),
        gradient(result) {}

  constexpr void operator()(std::int64_t item) const {
    const std::int64_t at = range.element(item);
    if (!range.is_packet(item)) {
      gradient[at] = T(scale * (static_cast<float>(prediction[at]) - target[at]));
      return;
    }
    Packet<T, 4> values = load<4>(prediction + at);
    const Packet<float, 4> wanted = load<4>(target + at);
    for (std::size_t i = 0; i < 4; ++i) {
      values.values[i] = T(scale * (static_cast<float>(values.values[i]) - wanted.values[i]));
    }
    store(values, gradient + at);
  }
};

}  // namespace halograd::cuda
