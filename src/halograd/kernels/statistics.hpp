#pragma once

#include "halograd/device/queue.hpp"
#include "halograd/kernels/chain.hpp"

#include <cstdint>

namespace halograd {

/// What stands between a chain's moments and its normalisation: sums over ranks of a few numbers a channel, and what is
/// made of them. Everything runs on the queue's device, so that no step waits for the host. Two sums, never
/// E[x²] − E[x]²: the mean first, then M2 + n (meanᵢ − mean)².
struct StatisticsDesc {
  std::int64_t channels = 0;
  std::int64_t sets = 1;            ///< how many means there are of each channel: one, or one a sample
  std::int64_t group_channels = 1;  ///< neighbouring channels that share a mean (batch and instance normalisation: 1)
  double own_count = 0;             ///< elements of each channel that this rank's moments are over
  double count = 0;                 ///< elements of each mean, over all ranks
  double epsilon = 0;
  bool contributes = true;  ///< whether this rank's elements count in the sums (of replicas, one's do)

  [[nodiscard]] constexpr std::int64_t values() const { return sets * channels; }
  [[nodiscard]] constexpr std::int64_t groups() const { return values() / group_channels; }
};

/// sums: [groups], assigned: this rank's share of n · mean. moments: [2, values], of Chain::moments.
void statistics_sums(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* sums);
/// mean: [groups], holds the sums over all ranks and then the means. squares: [groups], assigned: this rank's share of
/// M2 around them.
void statistics_squares(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* mean,
                        double* squares);
/// variance: [groups], holds M2 over all ranks and then the (biased) variances. mean_of, inverse_deviation: [values],
/// assigned.
void finish_statistics(const Queue& queue, const StatisticsDesc& desc, const double* mean, double* variance,
                       float* mean_of, float* inverse_deviation);

/// Batch normalisation: variance: [C], becomes unbiased, as running averages are.
void unbias_variance(const Queue& queue, const StatisticsDesc& desc, double* variance);
/// running += max(1 − decay, *least_weight) · (average / divisor − running), of mean and variance: averages: [2,C].
struct RunningAverages {
  std::int64_t channels = 0;
  double decay = 0;
  double divisor = 1;
};
void update_running_averages(const Queue& queue, const RunningAverages& desc, const double* averages,
                             const double* least_weight, float* running_mean, float* running_variance);
/// Evaluation: mean, inverse_deviation: [C], assigned from the running averages.
void use_running_statistics(const Queue& queue, std::int64_t channels, double epsilon, const float* running_mean,
                            const float* running_variance, float* mean, float* inverse_deviation);

/// What the sums of Chain::backward_sums over all ranks say. sums: [sets, 2, C]. dgamma, dbeta: [C], assigned: of the
/// ranks that know the sums one `writes`, the others set 0, so that a sum over ranks leaves them as they are. offset,
/// pull: [values] of NormGradient, assigned (Ioffe and Szegedy 2015:
/// dy = gamma · inverse_deviation · (dz − Σ dz / count − ẑ · Σ dz·ẑ / count)).
struct NormSums {
  StatisticsDesc statistics;
  bool writes = true;
};
void finish_norm_gradient(const Queue& queue, const NormSums& desc, const double* sums, const float* gamma,
                          const float* inverse_deviation, float* dgamma, float* dbeta, double* offset, double* pull);

}  // namespace halograd
