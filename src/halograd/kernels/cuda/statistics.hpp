#pragma once

#include "halograd/kernels/statistics.hpp"

namespace halograd::cuda {

void statistics_sums(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* sums);
void statistics_squares(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* mean,
                        double* squares);
void finish_statistics(const Queue& queue, const StatisticsDesc& desc, const double* mean, double* variance,
                       float* mean_of, float* inverse_deviation);
void unbias_variance(const Queue& queue, const StatisticsDesc& desc, double* variance);
void update_running_averages(const Queue& queue, const RunningAverages& desc, const double* averages,
                             const double* least_weight, float* running_mean, float* running_variance);
void use_running_statistics(const Queue& queue, std::int64_t channels, double epsilon, const float* running_mean,
                            const float* running_variance, float* mean, float* inverse_deviation);
void finish_norm_gradient(const Queue& queue, const NormSums& desc, const double* sums, const float* gamma,
                          const float* inverse_deviation, float* dgamma, float* dbeta, double* offset, double* pull);

}  // namespace halograd::cuda
