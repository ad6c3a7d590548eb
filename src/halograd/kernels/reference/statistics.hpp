#pragma once

#include "halograd/kernels/statistics.hpp"

/// The numbers are few: one implementation serves both of the processor's backends.
namespace halograd::reference {

void statistics_sums(const StatisticsDesc& desc, const double* moments, double* sums);
void statistics_squares(const StatisticsDesc& desc, const double* moments, double* mean, double* squares);
void finish_statistics(const StatisticsDesc& desc, const double* mean, double* variance, float* mean_of,
                       float* inverse_deviation);
void unbias_variance(const StatisticsDesc& desc, double* variance);
void update_running_averages(const RunningAverages& desc, const double* averages, const double* least_weight,
                             float* running_mean, float* running_variance);
void use_running_statistics(std::int64_t channels, double epsilon, const float* running_mean,
                            const float* running_variance, float* mean, float* inverse_deviation);
void finish_norm_gradient(const NormSums& desc, const double* sums, const float* gamma, const float* inverse_deviation,
                          float* dgamma, float* dbeta, double* offset, double* pull);

}  // namespace halograd::reference
