#pragma once

#include "halograd/kernels/statistics_math.hpp"

#include <cmath>

namespace halograd::cuda {

// What one thread does in the functions of statistics.hpp: with a group of channels, or with one channel.

constexpr float inverse_root(double variance, double epsilon) {
  return static_cast<float>(1.0 / std::sqrt(variance + epsilon));
}

struct SumsOfGroup {
  StatisticsDesc desc;
  const double* moments = nullptr;
  double* sums = nullptr;
  constexpr void operator()(std::int64_t g) const { sums[g] = group_sum(desc, moments, g); }
};

struct SquaresOfGroup {
  StatisticsDesc desc;
  const double* moments = nullptr;
  double* mean = nullptr;
  double* squares = nullptr;
  constexpr void operator()(std::int64_t g) const {
    const double mean_of_group = per_element(mean[g], desc.count);
    mean[g] = mean_of_group;
    squares[g] = group_squares(desc, moments, mean_of_group, g);
  }
};

struct FinishGroup {
  StatisticsDesc desc;
  const double* mean = nullptr;
  double* variance = nullptr;
  float* mean_of = nullptr;
  float* inverse_deviation = nullptr;
  constexpr void operator()(std::int64_t g) const {
    const double variance_of_group = per_element(variance[g], desc.count);
    variance[g] = variance_of_group;
    const auto plain = static_cast<float>(mean[g]);
    const float inverse = inverse_root(variance_of_group, desc.epsilon);
    for (std::int64_t i = g * desc.group_channels; i < (g + 1) * desc.group_channels; ++i) {
      mean_of[i] = plain;
      inverse_deviation[i] = inverse;
    }
  }
};

struct UnbiasChannel {
  double count = 0;
  double* variance = nullptr;
  constexpr void operator()(std::int64_t c) const { variance[c] *= count > 1 ? count / (count - 1) : 1; }
};

struct MoveAverages {
  RunningAverages desc;
  const double* averages = nullptr;
  const double* least_weight = nullptr;
  float* running_mean = nullptr;
  float* running_variance = nullptr;

  constexpr void operator()(std::int64_t c) const {
    const double weight = 1 - desc.decay > *least_weight ? 1 - desc.decay : *least_weight;
    move(weight, averages[c], running_mean[c]);
    move(weight, averages[desc.channels + c], running_variance[c]);
  }

private:
  constexpr void move(double weight, double average, float& running) const {
    running += static_cast<float>(weight * (average / desc.divisor - static_cast<double>(running)));
  }
};

struct UseRunning {
  double epsilon = 0;
  const float* running_mean = nullptr;
  const float* running_variance = nullptr;
  float* mean = nullptr;
  float* inverse_deviation = nullptr;
  constexpr void operator()(std::int64_t c) const {
    mean[c] = running_mean[c];
    inverse_deviation[c] = inverse_root(static_cast<double>(running_variance[c]), epsilon);
  }
};

/// Items: the channels, then the groups.
struct FinishGradient {
  NormSums desc;
  const double* sums = nullptr;
  const float* gamma = nullptr;
  const float* inverse_deviation = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;
  double* offset = nullptr;
  double* pull = nullptr;

  [[nodiscard]] constexpr std::int64_t items() const { return desc.statistics.channels + desc.statistics.groups(); }
  constexpr void operator()(std::int64_t item) const {
    const StatisticsDesc& statistics = desc.statistics;
    if (item < statistics.channels) {
      const ChannelGradient gradient = channel_gradient(desc, sums, item);
      dgamma[item] = gradient.gamma;
      dbeta[item] = gradient.beta;
      return;
    }
    const std::int64_t g = item - statistics.channels;
    const GroupGradient gradient = group_gradient(statistics, sums, gamma, inverse_deviation, g);
    for (std::int64_t i = g * statistics.group_channels; i < (g + 1) * statistics.group_channels; ++i) {
      offset[i] = gradient.offset;
      pull[i] = gradient.pull;
    }
  }
};

}  // namespace halograd::cuda
