#include "halograd/core/error.hpp"
#include "halograd/core/random.hpp"
#include "halograd/perf/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace halograd {
namespace {

double noise(std::uint64_t seed, std::uint64_t index, double amplitude) {
  return 1 + amplitude * (2 * random_stream(seed, RandomPurpose::synthetic).uniform53(index) - 1);
}

double seconds_of(const KernelRate& rate, double flops, double bytes) {
  const double of_flops = rate.flops_per_second > 0 ? flops / rate.flops_per_second : 0;
  const double of_bytes = rate.bytes_per_second > 0 ? bytes / rate.bytes_per_second : 0;
  return rate.overhead_seconds + std::max(of_flops, of_bytes);
}

/// Operations of 10^3 to 10^8 bytes and 1 to 100 flops a byte.
std::vector<KernelSample> measured(const KernelRate& rate, int count, double amplitude = 0, std::uint64_t seed = 1) {
  const auto random = random_stream(seed, RandomPurpose::synthetic, 1);
  std::vector<KernelSample> samples;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const double bytes = std::pow(10, 3 + 5 * random.uniform53(2 * at));
    const double flops = bytes * std::pow(10, 2 * random.uniform53(2 * at + 1));
    samples.push_back({flops, bytes, seconds_of(rate, flops, bytes) * noise(seed, at, amplitude)});
  }
  return samples;
}

#define EXPECT_WITHIN(part, actual, expected) EXPECT_NEAR((actual) / (expected), 1.0, part)

TEST(FitRate, ExactRoofline) {
  const KernelRate machines[] = {{8e-6, 60e9, 5e9}, {1e-6, 2e12, 60e9}, {30e-6, 14e12, 900e9}};
  for (const KernelRate& machine : machines) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const KernelRate rate = fit_rate(measured(machine, 40, 0, seed));
      EXPECT_WITHIN(0.01, rate.overhead_seconds, machine.overhead_seconds) << seed;
      EXPECT_WITHIN(0.01, rate.flops_per_second, machine.flops_per_second) << seed;
      EXPECT_WITHIN(0.01, rate.bytes_per_second, machine.bytes_per_second) << seed;
      EXPECT_LT(rate.error.value(), 0.001) << seed;
      EXPECT_EQ(rate.channel_tile, 1);
    }
  }
}

TEST(FitRate, NoOverhead) {
  const KernelRate rate = fit_rate(measured({0, 60e9, 5e9}, 40));
  EXPECT_EQ(rate.overhead_seconds, 0);
  EXPECT_WITHIN(0.01, rate.flops_per_second, 60e9);
  EXPECT_WITHIN(0.01, rate.bytes_per_second, 5e9);
}

TEST(FitRate, NoiseAndOutliers) {
  const KernelRate machine{8e-6, 60e9, 5e9};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<KernelSample> samples = measured(machine, 60, 0.1, seed);
    for (std::size_t i = 0; i < samples.size(); i += 12) samples[i].seconds *= 20;  // somebody else had the core
    const KernelRate rate = fit_rate(samples);
    EXPECT_WITHIN(0.1, rate.overhead_seconds, machine.overhead_seconds) << seed;
    EXPECT_WITHIN(0.1, rate.flops_per_second, machine.flops_per_second) << seed;
    EXPECT_WITHIN(0.1, rate.bytes_per_second, machine.bytes_per_second) << seed;
    EXPECT_GT(rate.error.value(), 0.02) << seed;
    EXPECT_LT(rate.error.value(), 0.1) << seed;
  }
}

// 6 samples of flops, 4 of bytes: the median alone would not see the latter.
TEST(FitRate, TheLesserPartCounts) {
  std::vector<KernelSample> samples;
  for (int i = 1; i <= 6; ++i) samples.push_back({i * 1e9, 0, 1e-6 + i * 1e9 / 50e9});
  for (int i = 1; i <= 4; ++i) samples.push_back({0, i * 1e6, 1e-6 + i * 1e6 / 4e9});
  const KernelRate rate = fit_rate(samples);
  EXPECT_WITHIN(0.01, rate.flops_per_second, 50e9);
  EXPECT_WITHIN(0.01, rate.bytes_per_second, 4e9);
}

TEST(FitRate, PartsThatTheSamplesLackCostNothing) {
  const KernelRate machine{8e-6, 60e9, 5e9};
  std::vector<KernelSample> samples = measured({8e-6, 0, 5e9}, 20);
  for (KernelSample& sample : samples) sample.flops = 0;
  const KernelRate bytes = fit_rate(samples);
  EXPECT_EQ(bytes.flops_per_second, 0);
  EXPECT_WITHIN(0.01, bytes.bytes_per_second, machine.bytes_per_second);
  EXPECT_WITHIN(0.01, bytes.overhead_seconds, machine.overhead_seconds);

  samples = measured({8e-6, 60e9, 0}, 20);
  for (KernelSample& sample : samples) sample.bytes = 0;
  const KernelRate flops = fit_rate(samples);
  EXPECT_EQ(flops.bytes_per_second, 0);
  EXPECT_WITHIN(0.01, flops.flops_per_second, machine.flops_per_second);
  EXPECT_WITHIN(0.01, flops.overhead_seconds, machine.overhead_seconds);
}

TEST(FitRate, PartsThatExplainNothingCostNothing) {
  // Memory-bound throughout.
  const KernelRate bytes = fit_rate(measured({8e-6, 1e15, 5e9}, 20));
  EXPECT_EQ(bytes.flops_per_second, 0);
  EXPECT_WITHIN(0.01, bytes.bytes_per_second, 5e9);
  // Only an overhead.
  const KernelRate nothing = fit_rate(std::vector<KernelSample>{{0, 0, 3e-6}, {0, 0, 3e-6}, {0, 0, 9e-6}});
  EXPECT_WITHIN(1e-6, nothing.overhead_seconds, 3e-6);
  EXPECT_EQ(nothing.flops_per_second, 0);
  EXPECT_EQ(nothing.bytes_per_second, 0);
}

TEST(FitRate, OneSample) {
  const KernelRate rate = fit_rate(std::vector<KernelSample>{{0, 1e6, 2e-4}});
  EXPECT_EQ(rate.overhead_seconds, 0);
  EXPECT_WITHIN(1e-9, rate.bytes_per_second, 5e9);
}

TEST(FitRate, RefusesWhatCannotBeFitted) {
  using Samples = std::vector<KernelSample>;
  EXPECT_THROW(fit_rate({}), UsageError);
  EXPECT_THROW(fit_rate(Samples{{1e6, 1e6, 0}}), UsageError);
  EXPECT_THROW(fit_rate(Samples{{-1, 1e6, 1e-3}}), UsageError);
  EXPECT_THROW(fit_rate(Samples{{1e6, INFINITY, 1e-3}}), UsageError);
}

}  // namespace
}  // namespace halograd
