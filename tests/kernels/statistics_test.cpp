#include "halograd/kernels/statistics.hpp"

#include "kernels/support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace halograd::test {
namespace {

using Real = long double;

constexpr double epsilon = 1e-5;

/// A tensor [samples, voxels, channels] and how it is normalised.
struct Layer {
  std::int64_t samples = 1;
  std::int64_t voxels = 1;
  std::int64_t channels = 1;
  bool per_sample = false;
  std::int64_t group_channels = 1;
  std::vector<Real> values;

  [[nodiscard]] std::int64_t sets() const { return per_sample ? samples : 1; }
  [[nodiscard]] std::int64_t groups() const { return sets() * channels / group_channels; }
  [[nodiscard]] std::size_t at(std::int64_t n, std::int64_t v, std::int64_t c) const {
    return static_cast<std::size_t>((n * voxels + v) * channels + c);
  }
  /// The mean that element (n, ·, c) belongs to.
  [[nodiscard]] std::size_t group_of(std::int64_t n, std::int64_t c) const {
    return static_cast<std::size_t>(((per_sample ? n : 0) * channels + c) / group_channels);
  }
  /// Of each mean.
  [[nodiscard]] double count() const {
    return static_cast<double>((per_sample ? 1 : samples) * voxels * group_channels);
  }

  template <typename Body>
  void for_each(const Body& body) const {
    for (std::int64_t n = 0; n < samples; ++n) {
      for (std::int64_t v = 0; v < voxels; ++v) {
        for (std::int64_t c = 0; c < channels; ++c) body(n, v, c);
      }
    }
  }
};

/// Far from zero, where a difference of squares would lose its digits.
Layer filled(Layer layer, std::uint64_t seed) {
  const auto numbers = random_values(layer.samples * layer.voxels * layer.channels, seed, 1000, 1002);
  layer.values.assign(numbers.begin(), numbers.end());
  return layer;
}

std::vector<Layer> layers() {
  std::vector<Layer> result = {
      {.samples = 3, .voxels = 40, .channels = 5},
      {.samples = 3, .voxels = 40, .channels = 5, .per_sample = true},
      {.samples = 2, .voxels = 31, .channels = 12, .per_sample = true, .group_channels = 4},
      {.samples = 1, .voxels = 7, .channels = 6, .per_sample = true, .group_channels = 6},
  };
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = filled(result[i], i);
  return result;
}

/// Mean and biased variance of each group, by definition.
struct Definition {
  std::vector<Real> mean, variance;
};

Definition define(const Layer& layer) {
  Definition result;
  result.mean.resize(static_cast<std::size_t>(layer.groups()));
  result.variance = result.mean;
  const Real count = static_cast<Real>(layer.count());
  layer.for_each(
      [&](auto n, auto v, auto c) { result.mean[layer.group_of(n, c)] += layer.values[layer.at(n, v, c)] / count; });
  layer.for_each([&](auto n, auto v, auto c) {
    const Real apart = layer.values[layer.at(n, v, c)] - result.mean[layer.group_of(n, c)];
    result.variance[layer.group_of(n, c)] += apart * apart / count;
  });
  return result;
}

/// A rank that holds the voxels [begin, end) of every sample.
struct Rank {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool contributes = true;
};

StatisticsDesc desc_of(const Layer& layer, const Rank& rank) {
  return {.channels = layer.channels,
          .sets = layer.sets(),
          .group_channels = layer.group_channels,
          .own_count = static_cast<double>((layer.per_sample ? 1 : layer.samples) * (rank.end - rank.begin)),
          .count = layer.count(),
          .epsilon = epsilon,
          .contributes = rank.contributes};
}

/// What Chain::moments says of a rank's part: mean and summed squared distance of each channel, [2, values].
std::vector<double> moments_of(const Layer& layer, const Rank& rank) {
  const auto values = static_cast<std::size_t>(layer.sets() * layer.channels);
  std::vector<Real> mean(values), m2(values);
  const auto count = static_cast<Real>(desc_of(layer, rank).own_count);
  const auto each = [&](const auto& body) {
    layer.for_each([&](auto n, auto v, auto c) {
      if (v < rank.begin || v >= rank.end) return;
      body(static_cast<std::size_t>((layer.per_sample ? n : 0) * layer.channels + c), layer.values[layer.at(n, v, c)]);
    });
  };
  each([&](std::size_t i, Real value) { mean[i] += value / count; });
  each([&](std::size_t i, Real value) { m2[i] += (value - mean[i]) * (value - mean[i]); });
  std::vector<double> result(mean.begin(), mean.end());
  result.insert(result.end(), m2.begin(), m2.end());
  return result;
}

void add(const std::vector<double>& share, std::vector<double>& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += share[i];
}

struct Statistics {
  std::vector<double> mean, variance;             ///< [groups]
  std::vector<float> mean_of, inverse_deviation;  ///< [values]
};

/// The statistics as ranks find them together; all must say the same.
Statistics statistics_of(Backend backend, const Layer& layer, const std::vector<Rank>& ranks) {
  const auto groups = static_cast<std::size_t>(layer.groups());
  std::vector<double> sums(groups), squares(groups);
  for (const Rank& rank : ranks) {
    std::vector<double> share(groups, 1e30);
    statistics_sums(backend, desc_of(layer, rank), moments_of(layer, rank).data(), share.data());
    add(share, sums);
  }
  Statistics result;
  for (const Rank& rank : ranks) {
    std::vector<double> share(groups, 1e30);
    std::vector<double> mean = sums;
    statistics_squares(backend, desc_of(layer, rank), moments_of(layer, rank).data(), mean.data(), share.data());
    add(share, squares);
    EXPECT_TRUE(result.mean.empty() || result.mean == mean);
    result.mean = mean;
  }
  result.variance = squares;
  result.mean_of.assign(static_cast<std::size_t>(layer.sets() * layer.channels), 9);
  result.inverse_deviation = result.mean_of;
  finish_statistics(backend, desc_of(layer, ranks[0]), result.mean.data(), result.variance.data(),
                    result.mean_of.data(), result.inverse_deviation.data());
  return result;
}

void expect_definition(const Layer& layer, const Statistics& got) {
  const Definition expected = define(layer);
  EXPECT_LT(relative_l2(got.mean, expected.mean), 1e-14);
  EXPECT_LT(relative_l2(got.variance, expected.variance), 1e-11);
  for (std::int64_t n = 0; n < layer.sets(); ++n) {
    for (std::int64_t c = 0; c < layer.channels; ++c) {
      const auto i = static_cast<std::size_t>(n * layer.channels + c);
      const Real deviation = std::sqrt(expected.variance[layer.group_of(n, c)] + static_cast<Real>(epsilon));
      EXPECT_EQ(got.mean_of[i], static_cast<float>(expected.mean[layer.group_of(n, c)]));
      EXPECT_NEAR(static_cast<double>(got.inverse_deviation[i] * static_cast<float>(deviation)), 1, 3e-7);
    }
  }
}

class StatisticsTest : public BackendTest {};

TEST_P(StatisticsTest, AreThoseOfAllRanksTogether) {
  for (const Layer& layer : layers()) {
    const std::int64_t end = layer.voxels;
    expect_definition(layer, statistics_of(GetParam(), layer, {{0, end}}));
    expect_definition(layer, statistics_of(GetParam(), layer, {{0, 1}, {1, 6}, {6, end}}));
    // A rank with no voxel at all.
    expect_definition(layer, statistics_of(GetParam(), layer, {{0, 4}, {4, 4}, {4, end}}));
  }
}

TEST_P(StatisticsTest, ReplicasCountOnce) {
  for (const Layer& layer : layers()) {
    const std::int64_t end = layer.voxels;
    const std::vector<Rank> ranks{{0, 3}, {0, 3, false}, {3, end}, {3, end, false}};
    expect_definition(layer, statistics_of(GetParam(), layer, ranks));
    std::vector<double> share(static_cast<std::size_t>(layer.groups()), 1e30);
    statistics_sums(GetParam(), desc_of(layer, ranks[1]), moments_of(layer, ranks[1]).data(), share.data());
    EXPECT_EQ(share, std::vector<double>(share.size()));
  }
}

TEST_P(StatisticsTest, OfNothingAreZero) {
  const StatisticsDesc desc{.channels = 2, .epsilon = 0.25};
  const std::vector<double> moments(4);
  std::vector<double> mean(2, 9), variance(2, 9);
  std::vector<float> mean_of(2), inverse(2);
  statistics_sums(GetParam(), desc, moments.data(), mean.data());
  statistics_squares(GetParam(), desc, moments.data(), mean.data(), variance.data());
  finish_statistics(GetParam(), desc, mean.data(), variance.data(), mean_of.data(), inverse.data());
  EXPECT_EQ(mean, (std::vector<double>{0, 0}));
  EXPECT_EQ(variance, (std::vector<double>{0, 0}));
  EXPECT_EQ(inverse, (std::vector<float>{2, 2}));
}

TEST_P(StatisticsTest, VarianceBecomesUnbiased) {
  std::vector<double> variance{3, 8};
  unbias_variance(GetParam(), {.channels = 2, .count = 5}, variance.data());
  EXPECT_DOUBLE_EQ(variance[0], 3.75);
  EXPECT_DOUBLE_EQ(variance[1], 10);
  unbias_variance(GetParam(), {.channels = 1, .count = 1}, variance.data());
  EXPECT_DOUBLE_EQ(variance[0], 3.75);  // of one element there is nothing else to say
}

/// Averages begin as the plain mean of the first steps and then decay; sums over groups of ranks are divided.
TEST_P(StatisticsTest, RunningAveragesFollowTheMean) {
  const RunningAverages desc{.channels = 2, .decay = 0.9, .divisor = 4};
  std::vector<float> mean(2), variance(2);
  std::array<Real, 4> expected{};
  for (int step = 0; step < 30; ++step) {
    const auto numbers = random_values(4, static_cast<std::uint64_t>(step), 0, 8);
    const std::vector<double> averages(numbers.begin(), numbers.end());
    const double least_weight = 1.0 / (step + 1);
    update_running_averages(GetParam(), desc, averages.data(), &least_weight, mean.data(), variance.data());
    const Real weight = std::max<Real>(0.1L, 1.0L / static_cast<Real>(step + 1));
    for (std::size_t i = 0; i < 4; ++i) {
      expected[i] = (1 - weight) * expected[i] + weight * static_cast<Real>(averages[i]) / 4;
      const float got = i < 2 ? mean[i] : variance[i - 2];
      ASSERT_NEAR(static_cast<double>(got), static_cast<double>(expected[i]), 2e-6) << step << " " << i;
    }
  }
}

TEST_P(StatisticsTest, EvaluationTakesTheRunningAverages) {
  const std::vector<float> running_mean{1.5F, -2, 0};
  const std::vector<float> running_variance{0, 3, 0.25F};
  std::vector<float> mean(3), inverse(3);
  use_running_statistics(GetParam(), 3, 1, running_mean.data(), running_variance.data(), mean.data(), inverse.data());
  EXPECT_EQ(mean, running_mean);
  EXPECT_EQ(inverse[0], 1.0F);
  EXPECT_EQ(inverse[1], 0.5F);
  EXPECT_FLOAT_EQ(inverse[2], static_cast<float>(1 / std::sqrt(1.25)));
}

/// Σ dz · z, where z is the layer normalised, scaled and shifted.
Real loss_of(const Layer& layer, const std::vector<float>& gamma, const std::vector<float>& beta,
             const std::vector<float>& dz) {
  const Definition statistics = define(layer);
  Real sum = 0;
  layer.for_each([&](auto n, auto v, auto c) {
    const std::size_t group = layer.group_of(n, c);
    const Real unit = (layer.values[layer.at(n, v, c)] - statistics.mean[group]) /
                      std::sqrt(statistics.variance[group] + static_cast<Real>(epsilon));
    const auto channel = static_cast<std::size_t>(c);
    sum += static_cast<Real>(dz[layer.at(n, v, c)]) *
           (unit * static_cast<Real>(gamma[channel]) + static_cast<Real>(beta[channel]));
  });
  return sum;
}

struct NormGradients {
  std::vector<float> gamma, beta;
  std::vector<double> offset, pull;
};

/// The gradients as the kernel makes them of the sums over all elements: [sets, 2, C].
NormGradients gradients_of(Backend backend, const Layer& layer, const std::vector<float>& gamma,
                           const Statistics& statistics, const std::vector<double>& sums, bool writes) {
  const auto channels = static_cast<std::size_t>(layer.channels);
  const auto values = static_cast<std::size_t>(layer.sets()) * channels;
  NormGradients result{std::vector<float>(channels, 9), std::vector<float>(channels, 9), std::vector<double>(values, 9),
                       std::vector<double>(values, 9)};
  finish_norm_gradient(backend, {desc_of(layer, {0, layer.voxels}), writes}, sums.data(), gamma.data(),
                       statistics.inverse_deviation.data(), result.gamma.data(), result.beta.data(),
                       result.offset.data(), result.pull.data());
  return result;
}

class NormGradientTest : public BackendTest {};

TEST_P(NormGradientTest, IsThatOfTheLossByFiniteDifferences) {
  for (Layer layer : layers()) {
    const auto gamma = random_values(layer.channels, 1, 0.5, 1.5);
    const auto beta = random_values(layer.channels, 2);
    const auto dz = random_values(static_cast<std::int64_t>(layer.values.size()), 3);
    const Statistics statistics = statistics_of(GetParam(), layer, {{0, layer.voxels}});
    const Definition exact = define(layer);
    const auto unit = [&](auto n, auto v, auto c) {
      const std::size_t group = layer.group_of(n, c);
      return (layer.values[layer.at(n, v, c)] - exact.mean[group]) /
             std::sqrt(exact.variance[group] + static_cast<Real>(epsilon));
    };
    const auto channels = static_cast<std::size_t>(layer.channels);
    std::vector<double> sums(static_cast<std::size_t>(2 * layer.sets()) * channels);
    layer.for_each([&](auto n, auto v, auto c) {
      const std::size_t at = (layer.per_sample ? 2 * static_cast<std::size_t>(n) : 0) * channels;
      const auto given = static_cast<double>(dz[layer.at(n, v, c)]);
      sums[at + static_cast<std::size_t>(c)] += given;
      sums[at + channels + static_cast<std::size_t>(c)] += given * static_cast<double>(unit(n, v, c));
    });
    const NormGradients got = gradients_of(GetParam(), layer, gamma, statistics, sums, true);

    const Real step = 1e-4L;
    const auto slope = [&](auto& number, auto by, const auto& loss) {
      const auto kept = number;
      number = static_cast<std::remove_reference_t<decltype(number)>>(kept + by);
      const Real above = loss();
      number = static_cast<std::remove_reference_t<decltype(number)>>(kept - by);
      const Real below = loss();
      number = kept;
      return static_cast<double>((above - below) / (2 * static_cast<Real>(by)));
    };
    std::vector<double> dy, expected;
    layer.for_each([&](auto n, auto v, auto c) {
      const std::size_t i = layer.at(n, v, c);
      if (i % 7 != 0) return;
      const std::size_t value =
          (layer.per_sample ? static_cast<std::size_t>(n) : 0) * channels + static_cast<std::size_t>(c);
      dy.push_back(static_cast<double>(gamma[static_cast<std::size_t>(c)]) *
                       static_cast<double>(statistics.inverse_deviation[value]) * static_cast<double>(dz[i]) +
                   got.offset[value] + static_cast<double>(unit(n, v, c)) * got.pull[value]);
      expected.push_back(slope(layer.values[i], step, [&] { return loss_of(layer, gamma, beta, dz); }));
    });
    EXPECT_LT(relative_l2(dy, expected), 1e-6);

    auto moved_gamma = gamma;
    auto moved_beta = beta;
    std::vector<double> dgamma, dbeta;
    for (std::size_t c = 0; c < channels; ++c) {
      const auto loss = [&] { return loss_of(layer, moved_gamma, moved_beta, dz); };
      dgamma.push_back(slope(moved_gamma[c], 0.25F, loss));  // linear: any step will do
      dbeta.push_back(slope(moved_beta[c], 0.25F, loss));
    }
    EXPECT_LT(relative_l2(got.gamma, dgamma), 1e-6);
    EXPECT_LT(relative_l2(got.beta, dbeta), 1e-6);
  }
}

/// Of the ranks that know the sums one writes the gradients of gamma and beta; all pass the statistics' gradient on.
TEST_P(NormGradientTest, IsWrittenOnce) {
  for (const Layer& layer : layers()) {
    const auto gamma = random_values(layer.channels, 1, 0.5, 1.5);
    const Statistics statistics = statistics_of(GetParam(), layer, {{0, layer.voxels}});
    const auto numbers = random_values(2 * layer.sets() * layer.channels, 4);
    const std::vector<double> sums(numbers.begin(), numbers.end());
    const NormGradients written = gradients_of(GetParam(), layer, gamma, statistics, sums, true);
    const NormGradients silent = gradients_of(GetParam(), layer, gamma, statistics, sums, false);
    EXPECT_EQ(silent.gamma, std::vector<float>(written.gamma.size()));
    EXPECT_EQ(silent.beta, std::vector<float>(written.beta.size()));
    EXPECT_EQ(silent.offset, written.offset);
    EXPECT_EQ(silent.pull, written.pull);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, StatisticsTest, both_backends(), backend_test_name);
INSTANTIATE_TEST_SUITE_P(Backends, NormGradientTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
