#include "halograd/kernels/cuda/launch.cuh"
#include "halograd/kernels/cuda/statistics.hpp"
#include "halograd/kernels/cuda/statistics_element.hpp"

namespace halograd::cuda {

void statistics_sums(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* sums) {
  for_each_item(queue, "summing means", SumsOfGroup{desc, moments, sums}, desc.groups());
}

void statistics_squares(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* mean,
                        double* squares) {
  for_each_item(queue, "summing squares", SquaresOfGroup{desc, moments, mean, squares}, desc.groups());
}

void finish_statistics(const Queue& queue, const StatisticsDesc& desc, const double* mean, double* variance,
                       float* mean_of, float* inverse_deviation) {
  for_each_item(queue, "finishing statistics", FinishGroup{desc, mean, variance, mean_of, inverse_deviation},
                desc.groups());
}

void unbias_variance(const Queue& queue, const StatisticsDesc& desc, double* variance) {
  for_each_item(queue, "unbiasing variances", UnbiasChannel{desc.count, variance}, desc.channels);
}

void update_running_averages(const Queue& queue, const RunningAverages& desc, const double* averages,
                             const double* least_weight, float* running_mean, float* running_variance) {
  for_each_item(queue, "updating running averages",
                MoveAverages{desc, averages, least_weight, running_mean, running_variance}, desc.channels);
}

void use_running_statistics(const Queue& queue, std::int64_t channels, double epsilon, const float* running_mean,
                            const float* running_variance, float* mean, float* inverse_deviation) {
  for_each_item(queue, "reading running averages",
                UseRunning{epsilon, running_mean, running_variance, mean, inverse_deviation}, channels);
}

void finish_norm_gradient(const Queue& queue, const NormSums& desc, const double* sums, const float* gamma,
                          const float* inverse_deviation, float* dgamma, float* dbeta, double* offset, double* pull) {
  const FinishGradient body{desc, sums, gamma, inverse_deviation, dgamma, dbeta, offset, pull};
  for_each_item(queue, "finishing the gradient of a normalisation", body, body.items());
}

}  // namespace halograd::cuda
