#include "halograd/perf/fit.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace halograd {
namespace {

constexpr double mebi = 1024.0 * 1024.0;

/// A factor between 1 − amplitude and 1 + amplitude.
double noise(std::uint64_t seed, std::uint64_t index, double amplitude) {
  return 1 + amplitude * (2 * random_stream(seed, RandomPurpose::synthetic).uniform53(index) - 1);
}

using SecondsOf = std::function<double(double bytes, double ranks)>;

std::vector<double> geometric(double first, double last, double factor) {
  std::vector<double> values;
  while (first <= last) {
    values.push_back(first);
    first *= factor;
  }
  return values;
}

/// 256 B to 64 MiB by factors of 4, or of 2.
std::vector<MessageSample> measured(const std::vector<std::int64_t>& ranks, const SecondsOf& seconds,
                                    double amplitude = 0, std::uint64_t seed = 1, double factor = 4) {
  std::vector<MessageSample> samples;
  for (const std::int64_t number : ranks) {
    for (const double bytes : geometric(256, 64 * mebi, factor)) {
      const double exact = seconds(bytes, static_cast<double>(number));
      samples.push_back({bytes, number, exact * noise(seed, samples.size(), amplitude)});
    }
  }
  return samples;
}

double seconds_of(const LinkRanges& link, double bytes) {
  double seconds = 0;
  for (const LinkRange& range : link) {
    if (bytes >= range.from_bytes) seconds = range.latency_seconds + bytes / range.bytes_per_second;
  }
  return seconds;
}

double seconds_of(const ReductionFit& fit, double bytes, double ranks) {
  double log2_seconds = 0;
  for (const ReductionRange& range : fit) {
    if (bytes < range.from_bytes) continue;
    log2_seconds = range.constant + range.bytes_exponent * std::log2(bytes) + range.ranks_exponent * std::log2(ranks);
  }
  return std::exp2(log2_seconds);
}

#define EXPECT_WITHIN(part, actual, expected) EXPECT_NEAR((actual) / (expected), 1.0, part)

double line(double bytes, double) {
  return 2e-6 + bytes / 5e9;
}

// Eager copies, then a rendezvous, then what no longer fits the cache. Each range begins above where the one before
// ended.
double three_lines(double bytes, double) {
  if (bytes < 16 * 1024) return 1e-6 + bytes / 1e9;
  if (bytes < mebi) return 20e-6 + bytes / 8e9;
  return 100e-6 + bytes / 2e9;
}

TEST(FitLink, ExactLine) {
  const LinkRanges link = fit_link(measured({2}, line));
  ASSERT_EQ(link.size(), 1U);
  EXPECT_EQ(link[0].from_bytes, 0);
  EXPECT_WITHIN(1e-9, link[0].latency_seconds, 2e-6);
  EXPECT_WITHIN(1e-9, link[0].bytes_per_second, 5e9);
  EXPECT_LT(link[0].error.value(), 1e-9);
}

TEST(FitLink, TwoSizesAreEnough) {
  const std::vector<MessageSample> samples = {{1000, 2, 3e-6}, {5000, 2, 7e-6}};
  const LinkRanges link = fit_link(samples);
  ASSERT_EQ(link.size(), 1U);
  EXPECT_WITHIN(1e-9, link[0].latency_seconds, 2e-6);
  EXPECT_WITHIN(1e-9, link[0].bytes_per_second, 1e9);
}

TEST(FitLink, ExactLinesWithBreaks) {
  const LinkRanges link = fit_link(measured({2}, three_lines));
  ASSERT_EQ(link.size(), 3U);
  const double latencies[] = {1e-6, 20e-6, 100e-6};
  const double bandwidths[] = {1e9, 8e9, 2e9};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_WITHIN(1e-6, link[i].latency_seconds, latencies[i]) << i;
    EXPECT_WITHIN(1e-6, link[i].bytes_per_second, bandwidths[i]) << i;
    EXPECT_LT(link[i].error.value(), 1e-6) << i;
  }
  EXPECT_EQ(link[0].from_bytes, 0);
  EXPECT_GT(link[1].from_bytes, 4 * 1024);  // between the sizes on both sides of the break
  EXPECT_LE(link[1].from_bytes, 16 * 1024);
  EXPECT_GT(link[2].from_bytes, mebi / 4);
  EXPECT_LE(link[2].from_bytes, mebi);
}

TEST(FitLink, NoiseEarnsNoBreaks) {
  int breaks = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const LinkRanges link = fit_link(measured({2}, line, 0.1, seed));
    breaks += link.size() > 1 ? 1 : 0;
    for (const double bytes : geometric(256, 64 * mebi, 2)) {
      EXPECT_WITHIN(0.15, seconds_of(link, bytes), line(bytes, 2)) << bytes << " bytes, seed " << seed;
    }
    for (const LinkRange& range : link) EXPECT_LT(range.error.value(), 0.1);
  }
  EXPECT_LE(breaks, 5);
}

TEST(FitLink, BreaksAreFoundInNoise) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const LinkRanges link = fit_link(measured({2}, three_lines, 0.05, seed, 2));
    EXPECT_GE(link.size(), 2U) << seed;
    EXPECT_WITHIN(0.1, link.front().bytes_per_second, 1e9) << seed;
    EXPECT_WITHIN(0.1, link.back().bytes_per_second, 2e9) << seed;
    EXPECT_GT(link.front().error.value(), 0.001);
    EXPECT_LT(link.front().error.value(), 0.05);
  }
}

TEST(FitLink, NoNegativeFigures) {
  // Steeper than in proportion: a line through it would start below 0.
  const LinkRanges steep = fit_link(std::vector<MessageSample>{{1000, 2, 1e-6}, {2000, 2, 3e-6}});
  ASSERT_EQ(steep.size(), 1U);
  EXPECT_EQ(steep[0].latency_seconds, 0);
  EXPECT_WITHIN(1e-6, steep[0].bytes_per_second, std::sqrt(1e9 * 2e9 / 3));  // the mean of the logarithms
  // Falling: a constant, and a bandwidth of no consequence.
  const LinkRanges falling = fit_link(std::vector<MessageSample>{{1000, 2, 4e-6}, {2000, 2, 2e-6}});
  ASSERT_EQ(falling.size(), 1U);
  EXPECT_WITHIN(1e-6, falling[0].latency_seconds, std::sqrt(4e-6 * 2e-6));
  EXPECT_TRUE(std::isfinite(falling[0].bytes_per_second));
  EXPECT_GT(falling[0].bytes_per_second, 0);
  EXPECT_WITHIN(0.002, seconds_of(falling, 2000), falling[0].latency_seconds);
}

// Weights of 1 / seconds² would give 1.1 µs: what took too long hardly counts there.
TEST(FitLink, TooLittleCountsAsMuchAsTooMuch) {
  const LinkRanges link =
      fit_link(std::vector<MessageSample>{{1000, 2, 1e-6}, {1000, 2, 9e-6}, {2000, 2, 1e-6}, {2000, 2, 9e-6}});
  EXPECT_WITHIN(0.002, seconds_of(link, 1000), 3e-6);
}

// One that falls by half at 64 KiB, and one with breaks, under wild noise.
TEST(FitLink, LongerMessagesNeverCostLess) {
  const auto falls = [](double bytes, double) { return (bytes < 65'536 ? 1.0 : 0.5) * (5e-6 + bytes / 2e9); };
  int with_breaks = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const SecondsOf function = seed < 50 ? SecondsOf(falls) : SecondsOf(three_lines);
    const LinkRanges link = fit_link(measured({2}, function, 0.01 * static_cast<double>(seed % 50), seed, 2));
    with_breaks += link.size() > 1 ? 1 : 0;
    double before = 0;
    for (const double bytes : geometric(1, 1024 * mebi, 1.01)) {
      const double seconds = seconds_of(link, bytes);
      EXPECT_GE(seconds, before * (1 - 1e-12)) << bytes << " bytes, seed " << seed;
      before = seconds;
    }
  }
  EXPECT_GT(with_breaks, 20);
}

TEST(FitLink, RefusesWhatCannotBeFitted) {
  using Samples = std::vector<MessageSample>;
  EXPECT_THROW(fit_link({}), UsageError);
  EXPECT_THROW(fit_link(Samples{{1000, 2, 1e-6}, {1000, 2, 2e-6}}), UsageError);
  EXPECT_THROW(fit_link(Samples{{1000, 2, 1e-6}, {2000, 2, 0}}), UsageError);
  EXPECT_THROW(fit_link(Samples{{1000, 2, 1e-6}, {-1, 2, 1e-6}}), UsageError);
  EXPECT_THROW(fit_link(Samples{{1000, 2, 1e-6}, {2000, 2, NAN}}), UsageError);
}

double power_law(double bytes, double ranks) {
  return 3e-9 * std::pow(bytes, 0.8) * std::pow(ranks, 0.6);
}

TEST(FitReduction, ExactPowerLaw) {
  const ReductionFit fit = fit_reduction(measured({2, 4, 8, 12}, power_law));
  ASSERT_EQ(fit.size(), 1U);
  EXPECT_EQ(fit[0].from_bytes, 0);
  EXPECT_NEAR(fit[0].bytes_exponent, 0.8, 1e-9);
  EXPECT_NEAR(fit[0].ranks_exponent, 0.6, 1e-9);
  EXPECT_NEAR(fit[0].constant, std::log2(3e-9), 1e-8);
  EXPECT_LT(fit[0].error.value(), 1e-9);
}

// Latency up to 32 KiB, then bytes.
double latency_or_bytes(double bytes, double ranks) {
  constexpr double meet = 32'768;
  return bytes < meet ? 4e-6 * ranks : 4e-6 * ranks * (bytes / meet);
}

TEST(FitReduction, ExactPowerLawsWithBreak) {
  const ReductionFit fit = fit_reduction(measured({2, 4, 8}, latency_or_bytes));
  ASSERT_EQ(fit.size(), 2U);
  EXPECT_NEAR(fit[0].bytes_exponent, 0, 1e-9);
  EXPECT_NEAR(fit[1].bytes_exponent, 1, 1e-9);
  for (const ReductionRange& range : fit) EXPECT_NEAR(range.ranks_exponent, 1, 1e-9);
  EXPECT_WITHIN(1e-6, fit[1].from_bytes, 32'768.0);  // where the two meet
}

TEST(FitReduction, PowerLawsInNoise) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const ReductionFit fit = fit_reduction(measured({2, 4, 8}, latency_or_bytes, 0.1, seed));
    ASSERT_GE(fit.size(), 2U) << seed;
    for (const double ranks : {2.0, 4.0, 8.0}) {
      double before = 0;
      for (const double bytes : geometric(256, 64 * mebi, 2)) {
        const double seconds = seconds_of(fit, bytes, ranks);
        EXPECT_WITHIN(0.25, seconds, latency_or_bytes(bytes, ranks)) << bytes << " bytes, seed " << seed;
        EXPECT_GE(seconds, before * (1 - 1e-12)) << bytes << " bytes, seed " << seed;
        before = seconds;
      }
    }
  }
}

TEST(FitReduction, OneNumberOfRanksTakesTheExponentOfTheory) {
  const ReductionFit fit = fit_reduction(measured({4}, latency_or_bytes));
  ASSERT_EQ(fit.size(), 2U);
  // Latency: twice as much from 4 ranks (2 levels of a tree) to 16 (4 levels).
  EXPECT_NEAR(fit[0].ranks_exponent, 0.5, 1e-6);
  // Bytes: from 3/4 to 15/16.
  EXPECT_NEAR(fit[1].ranks_exponent, std::log2(15.0 / 16 / (3.0 / 4)) / 2, 1e-6);
  for (const double bytes : {1024.0, mebi}) {
    EXPECT_WITHIN(1e-6, seconds_of(fit, bytes, 4), latency_or_bytes(bytes, 4));
  }
  EXPECT_WITHIN(1e-6, seconds_of(fit, 1024, 16), 2 * latency_or_bytes(1024, 4));
  EXPECT_WITHIN(1e-6, seconds_of(fit, mebi, 16), 1.25 * latency_or_bytes(mebi, 4));
}

TEST(FitReduction, ExponentsAreNotNegative) {
  const auto falling = [](double bytes, double ranks) { return std::pow(bytes, -0.1) / ranks; };
  const ReductionFit fit = fit_reduction(measured({2, 4, 8}, falling));
  for (const ReductionRange& range : fit) {
    EXPECT_GE(range.bytes_exponent, 0);
    EXPECT_GE(range.ranks_exponent, 0);
  }
}

TEST(FitReduction, RefusesWhatCannotBeFitted) {
  using Samples = std::vector<MessageSample>;
  EXPECT_THROW(fit_reduction({}), UsageError);
  EXPECT_THROW(fit_reduction(Samples{{1000, 2, 1e-6}, {1000, 4, 2e-6}}), UsageError);
  EXPECT_THROW(fit_reduction(Samples{{1000, 2, 1e-6}, {2000, 1, 2e-6}}), UsageError);
}

}  // namespace
}  // namespace halograd
