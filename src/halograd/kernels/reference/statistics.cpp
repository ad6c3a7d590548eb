#include "halograd/kernels/reference/statistics.hpp"

#include "halograd/kernels/statistics_math.hpp"

#include <algorithm>
#include <cmath>

namespace halograd::reference {
namespace {

float inverse_root(double variance, double epsilon) {
  return static_cast<float>(1.0 / std::sqrt(variance + epsilon));
}

}  // namespace

void statistics_sums(const StatisticsDesc& desc, const double* moments, double* sums) {
  for (std::int64_t g = 0; g < desc.groups(); ++g) sums[g] = group_sum(desc, moments, g);
}

void statistics_squares(const StatisticsDesc& desc, const double* moments, double* mean, double* squares) {
  for (std::int64_t g = 0; g < desc.groups(); ++g) {
    mean[g] = per_element(mean[g], desc.count);
    squares[g] = group_squares(desc, moments, mean[g], g);
  }
}

void finish_statistics(const StatisticsDesc& desc, const double* mean, double* variance, float* mean_of,
                       float* inverse_deviation) {
  for (std::int64_t g = 0; g < desc.groups(); ++g) {
    variance[g] = per_element(variance[g], desc.count);
    const std::int64_t at = g * desc.group_channels;
    std::fill_n(mean_of + at, desc.group_channels, static_cast<float>(mean[g]));
    std::fill_n(inverse_deviation + at, desc.group_channels, inverse_root(variance[g], desc.epsilon));
  }
}

void unbias_variance(const StatisticsDesc& desc, double* variance) {
  const double factor = desc.count > 1 ? desc.count / (desc.count - 1) : 1;
  for (std::int64_t c = 0; c < desc.channels; ++c) variance[c] *= factor;
}

void update_running_averages(const RunningAverages& desc, const double* averages, const double* least_weight,
                             float* running_mean, float* running_variance) {
  const double weight = std::max(1 - desc.decay, *least_weight);
  for (std::int64_t c = 0; c < desc.channels; ++c) {
    const auto move = [&](float& running, double average) {
      running += static_cast<float>(weight * (average / desc.divisor - running));
    };
    move(running_mean[c], averages[c]);
    move(running_variance[c], averages[desc.channels + c]);
  }
}

void use_running_statistics(std::int64_t channels, double epsilon, const float* running_mean,
                            const float* running_variance, float* mean, float* inverse_deviation) {
  std::copy_n(running_mean, channels, mean);
  for (std::int64_t c = 0; c < channels; ++c) inverse_deviation[c] = inverse_root(running_variance[c], epsilon);
}

void finish_norm_gradient(const NormSums& desc, const double* sums, const float* gamma, const float* inverse_deviation,
                          float* dgamma, float* dbeta, double* offset, double* pull) {
  const StatisticsDesc& statistics = desc.statistics;
  for (std::int64_t c = 0; c < statistics.channels; ++c) {
    const ChannelGradient gradient = channel_gradient(desc, sums, c);
    dgamma[c] = gradient.gamma;
    dbeta[c] = gradient.beta;
  }
  for (std::int64_t g = 0; g < statistics.groups(); ++g) {
    const GroupGradient gradient = group_gradient(statistics, sums, gamma, inverse_deviation, g);
    const std::int64_t at = g * statistics.group_channels;
    std::fill_n(offset + at, statistics.group_channels, gradient.offset);
    std::fill_n(pull + at, statistics.group_channels, gradient.pull);
  }
}

}  // namespace halograd::reference
