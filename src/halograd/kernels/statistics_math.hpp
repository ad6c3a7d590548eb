#pragma once

#include "halograd/kernels/statistics.hpp"

#include <cstdint>

namespace halograd {

// What one group of channels (or one channel) does in the functions of statistics.hpp, the same on host and device.

/// The share of group `g` in Σ n · mean.
constexpr double group_sum(const StatisticsDesc& desc, const double* moments, std::int64_t g) {
  double sum = 0;
  for (std::int64_t i = 0; desc.contributes && i < desc.group_channels; ++i) {
    sum += desc.own_count * moments[g * desc.group_channels + i];
  }
  return sum;
}

/// Its share in Σ M2 + n (meanᵢ − mean)².
constexpr double group_squares(const StatisticsDesc& desc, const double* moments, double mean, std::int64_t g) {
  const double* const m2 = moments + desc.values();
  double sum = 0;
  for (std::int64_t i = 0; desc.contributes && i < desc.group_channels; ++i) {
    const std::int64_t c = g * desc.group_channels + i;
    const double apart = moments[c] - mean;
    sum += m2[c] + desc.own_count * apart * apart;
  }
  return sum;
}

constexpr double per_element(double sum, double count) {
  return count > 0 ? sum / count : 0;
}

struct ChannelGradient {
  float gamma = 0;
  float beta = 0;
};

/// Σ dz·ẑ and Σ dz of channel `c` over all sets.
constexpr ChannelGradient channel_gradient(const NormSums& desc, const double* sums, std::int64_t c) {
  double beta = 0;
  double gamma = 0;
  for (std::int64_t set = 0; desc.writes && set < desc.statistics.sets; ++set) {
    beta += sums[2 * set * desc.statistics.channels + c];
    gamma += sums[(2 * set + 1) * desc.statistics.channels + c];
  }
  return {static_cast<float>(gamma), static_cast<float>(beta)};
}

struct GroupGradient {
  double offset = 0;
  double pull = 0;
};

/// NormGradient's two numbers for group `g`, without the factor that differs among its channels (there is none: gamma
/// weights the sums, dẑ = gamma · dz).
constexpr GroupGradient group_gradient(const StatisticsDesc& desc, const double* sums, const float* gamma,
                                       const float* inverse_deviation, std::int64_t g) {
  const std::int64_t at = g * desc.group_channels;
  const std::int64_t set = at / desc.channels;
  const double* const of_set = sums + 2 * set * desc.channels;
  double plain = 0;
  double weighted = 0;
  for (std::int64_t c = at % desc.channels; c < at % desc.channels + desc.group_channels; ++c) {
    plain += static_cast<double>(gamma[c]) * of_set[c];
    weighted += static_cast<double>(gamma[c]) * of_set[desc.channels + c];
  }
  const double factor = -static_cast<double>(inverse_deviation[at]) / desc.count;
  return {factor * plain, factor * weighted};
}

}  // namespace halograd
