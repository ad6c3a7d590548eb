#include "halograd/perf/fit.hpp"

#include "halograd/perf/fit_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halograd {

namespace {

/// A range whose seconds do not grow with bytes gets the bandwidth at which its longest message spends this part of
/// its time on bytes: finite, and of no consequence.
constexpr double unmeasurable_share = 1e-3;

struct Line {
  double latency = 0;
  double slope = 0;  ///< seconds a byte
  [[nodiscard]] double at(double bytes) const { return latency + bytes * slope; }
};

/// What a line is to go through, and how much a deviation from it counts: (deviation / scale)².
struct Target {
  double bytes = 0;
  double seconds = 0;
  double scale = 0;
};

/// Weighted least squares, neither figure being negative. All targets are positive.
Line least_squares(std::span<const Target> targets) {
  double uu = 0, uv = 0, vv = 0, ut = 0, vt = 0;  // products of u = 1, v = bytes and t = seconds, each over the scale
  for (const Target& target : targets) {
    const double u = 1 / target.scale;
    const double v = target.bytes / target.scale;
    const double t = target.seconds / target.scale;
    uu += u * u;
    uv += u * v;
    vv += v * v;
    ut += u * t;
    vt += v * t;
  }
  const double slope = (vt - ut * uv / uu) / (vv - uv * uv / uu);
  const double latency = (ut - slope * uv) / uu;
  if (slope < 0) return {ut / uu, 0};
  if (latency < 0) return {0, vt / vv};
  return {latency, slope};
}

double squared_log_error(const Line& line, std::span<const MessageSample> samples) {
  double sum = 0;
  for (const MessageSample& sample : samples) {
    const double error = std::log(line.at(sample.bytes) / sample.seconds);
    sum += error * error;
  }
  return sum;
}

/// A damped Gauss-Newton step towards the least squared_log_error: the logarithm, made linear at `line`.
Line step_from(const Line& line, double damping, std::span<const MessageSample> samples) {
  constexpr double longest_fall = 0.9;  // of any target in a step, so that all stay positive
  double fall = 0;
  for (const MessageSample& sample : samples) fall = std::max(fall, std::log(line.at(sample.bytes) / sample.seconds));
  if (fall * damping > longest_fall) damping = longest_fall / fall;
  std::vector<Target> targets;
  for (const MessageSample& sample : samples) {
    const double at = line.at(sample.bytes);
    targets.push_back({sample.bytes, at * (1 + damping * std::log(sample.seconds / at)), at});
  }
  return least_squares(targets);
}

/// Minimises squared_log_error. Starts with weights 1 / seconds²: the same for small deviations, but a sample that took
/// far longer than the line says counts for no more than 1 there.
LinkRange fit_line(std::span<const MessageSample> samples) {
  constexpr int most_steps = 40;
  std::vector<Target> targets;
  for (const MessageSample& sample : samples) targets.push_back({sample.bytes, sample.seconds, sample.seconds});
  Line line = least_squares(targets);
  double error = squared_log_error(line, samples);
  double damping = 1;
  for (int step = 0; step < most_steps; ++step) {
    const Line next = step_from(line, damping, samples);
    const double next_error = squared_log_error(next, samples);
    if (next_error < error) {
      line = next;
      error = next_error;
    } else {
      damping /= 2;
    }
  }
  line.slope = std::max(line.slope, unmeasurable_share * line.latency / samples.back().bytes);
  return {.latency_seconds = line.latency, .bytes_per_second = 1 / line.slope};
}

/// How fast a sum over so many ranks grows with their number: the exponent that theory gives it. A sum takes log2(P)
/// messages one behind the other (a tree's levels), of which each byte crosses a rank's link 2 · (P − 1) / P times (a
/// reduce-scatter and a gather). A power law can't follow either for all P: these meet it at P and at P². Where seconds
/// grow with bytes^b, b is the share of the bytes in them (d log seconds / d log bytes), and 1 − b that of the latency.
double theoretical_ranks_exponent(double log2_ranks, double bytes_exponent) {
  const double of_latency = 1 / log2_ranks;
  const double of_bytes = std::log2(1 + std::exp2(-log2_ranks)) / log2_ranks;
  const double share = std::clamp(bytes_exponent, 0.0, 1.0);
  return (1 - share) * of_latency + share * of_bytes;
}

/// Ordinary least squares of log2(seconds) on log2(bytes) and log2(ranks); exponents are not negative.
ReductionRange fit_power_law(std::span<const MessageSample> samples) {
  const auto count = static_cast<double>(samples.size());
  double x_mean = 0, p_mean = 0, y_mean = 0;
  for (const MessageSample& sample : samples) {
    x_mean += std::log2(sample.bytes) / count;
    p_mean += std::log2(static_cast<double>(sample.ranks)) / count;
    y_mean += std::log2(sample.seconds) / count;
  }
  double xx = 0, xp = 0, pp = 0, xy = 0, py = 0;  // covariances
  for (const MessageSample& sample : samples) {
    const double x = std::log2(sample.bytes) - x_mean;
    const double p = std::log2(static_cast<double>(sample.ranks)) - p_mean;
    const double y = std::log2(sample.seconds) - y_mean;
    xx += x * x;
    xp += x * p;
    pp += p * p;
    xy += x * y;
    py += p * y;
  }
  ReductionRange range;
  const double determinant = xx * pp - xp * xp;
  // Not where there is one number of ranks, nor where bytes and ranks only grow together.
  const bool tells_ranks_apart = pp > 1e-6 && determinant > 1e-6 * xx * pp;
  if (tells_ranks_apart) {
    range.bytes_exponent = (xy * pp - py * xp) / determinant;
    range.ranks_exponent = (py * xx - xy * xp) / determinant;
    if (range.bytes_exponent < 0) {
      range.bytes_exponent = 0;
      range.ranks_exponent = std::max(0.0, py / pp);
    } else if (range.ranks_exponent < 0) {
      range.ranks_exponent = 0;
      range.bytes_exponent = std::max(0.0, xy / xx);
    }
  } else {
    range.bytes_exponent = std::max(0.0, xy / xx);
    range.ranks_exponent = theoretical_ranks_exponent(p_mean, range.bytes_exponent);
  }
  range.constant = y_mean - range.bytes_exponent * x_mean - range.ranks_exponent * p_mean;
  return range;
}

}  // namespace

LinkRanges fit_link(std::span<const MessageSample> samples) {
  const auto seconds = [](const LinkRange& range, double bytes, std::int64_t) {
    return range.latency_seconds + bytes / range.bytes_per_second;
  };
  const perf::SizedSamples sized = perf::by_size("messages", samples);
  return perf::RangeFit<LinkRange>(sized, 2, fit_line, seconds).best();
}

ReductionFit fit_reduction(std::span<const MessageSample> samples) {
  const auto seconds = [](const ReductionRange& range, double bytes, std::int64_t ranks) {
    return std::exp2(range.constant + range.bytes_exponent * std::log2(bytes) +
                     range.ranks_exponent * std::log2(static_cast<double>(ranks)));
  };
  const perf::SizedSamples sized = perf::by_size("sums", samples);
  const bool one_number =
      std::ranges::all_of(samples, [&](const MessageSample& sample) { return sample.ranks == samples.front().ranks; });
  return perf::RangeFit<ReductionRange>(sized, one_number ? 2 : 3, fit_power_law, seconds).best();
}

}  // namespace halograd
