#include "halograd/core/error.hpp"
#include "halograd/perf/fit.hpp"
#include "halograd/perf/fit_ranges.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace halograd {

namespace {

/// A part (an overhead, flops, bytes) is left out unless it makes the mean relative deviation smaller by this much: of
/// itself, and in all.
constexpr double worthwhile_part = 0.01;
constexpr double exact_deviation = 1e-6;

bool no_worse(double simple, double full) {
  return simple <= full * (1 + worthwhile_part) + exact_deviation;
}

/// The least value of a function with one valley.
template <typename Function>
double valley(double from, double to, int steps, const Function& function) {
  constexpr double golden = 0.6180339887498949;
  double left = to - golden * (to - from);
  double right = from + golden * (to - from);
  double at_left = function(left);
  double at_right = function(right);
  for (int step = 0; step < steps; ++step) {
    if (at_left <= at_right) {
      to = right;
      right = left;
      at_right = at_left;
      left = to - golden * (to - from);
      at_left = function(left);
    } else {
      from = left;
      left = right;
      at_left = at_right;
      right = from + golden * (to - from);
      at_right = function(right);
    }
  }
  return at_left <= at_right ? left : right;
}

/// seconds = overhead + slope · work.
struct Line {
  double overhead = 0;
  double slope = 0;
  double deviation = 0;  ///< mean of the relative ones
};

/// Lines with the least mean relative deviation. The mean and not the median, which is blind to half of the samples:
/// it would be 0 with every memory-bound one missed. Absolute and not squared, so that outliers don't count for more.
class LineFit {
public:
  explicit LineFit(std::span<const KernelSample> samples) : samples_(samples) {
    for (const KernelSample& sample : samples) longest_ = std::max(longest_, sample.seconds);
  }

  /// work(sample) gives a sample's work.
  template <typename Work>
  [[nodiscard]] Line best(const Work& work) {
    work_.clear();
    for (const KernelSample& sample : samples_) work_.push_back(work(sample));
    const Line without = with_overhead(0);
    const double overhead = valley(0, longest_, 60, [&](double value) { return with_overhead(value).deviation; });
    const Line line = with_overhead(overhead);
    return without.slope > 0 && no_worse(without.deviation, line.deviation) ? without : line;
  }

private:
  /// The best slope for an overhead: the median of those through each sample, weighted by what they change.
  Line with_overhead(double overhead) {
    slopes_.clear();
    double weights = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (work_[i] <= 0) continue;
      const double weight = work_[i] / samples_[i].seconds;
      slopes_.push_back({(samples_[i].seconds - overhead) / work_[i], weight});
      weights += weight;
    }
    std::ranges::sort(slopes_, {}, &Weighted::slope);
    Line line{.overhead = overhead};
    double passed = 0;
    for (const Weighted& candidate : slopes_) {
      line.slope = std::max(0.0, candidate.slope);
      passed += candidate.weight;
      if (2 * passed >= weights) break;
    }
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      line.deviation += std::abs((overhead + line.slope * work_[i]) / samples_[i].seconds - 1);
    }
    line.deviation /= static_cast<double>(samples_.size());
    return line;
  }

  struct Weighted {
    double slope;
    double weight;
  };
  std::span<const KernelSample> samples_;
  double longest_ = 0;
  std::vector<double> work_;
  std::vector<Weighted> slopes_;
};

/// seconds = overhead + slope · max(flop_weight · flops, byte_weight · bytes).
struct Roofline {
  double flop_weight = 0;
  double byte_weight = 0;
  Line line;

  [[nodiscard]] double work(const KernelSample& sample) const {
    return std::max(flop_weight * sample.flops, byte_weight * sample.bytes);
  }
};

Roofline fitted(LineFit& fit, double flop_weight, double byte_weight) {
  Roofline roofline{flop_weight, byte_weight, {}};
  roofline.line = fit.best([&](const KernelSample& sample) { return roofline.work(sample); });
  return roofline;
}

/// log2 of the fewest and the most bytes that a flop may be worth: from samples that have both, between which the limit
/// changes from one to the other, and from what all would cost if they had but one.
std::array<double, 2> exchange_rates(std::span<const KernelSample> samples) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Bounds {
    double least = infinity;
    double most = 0;
    void add(double value) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  };
  Bounds seconds_per_flop, seconds_per_byte, bytes_per_flop;
  for (const KernelSample& sample : samples) {
    if (sample.flops > 0) seconds_per_flop.add(sample.seconds / sample.flops);
    if (sample.bytes > 0) seconds_per_byte.add(sample.seconds / sample.bytes);
    if (sample.flops > 0 && sample.bytes > 0) bytes_per_flop.add(sample.bytes / sample.flops);
  }
  bytes_per_flop.add(seconds_per_flop.least / seconds_per_byte.most);
  bytes_per_flop.add(seconds_per_flop.most / seconds_per_byte.least);
  return {std::log2(bytes_per_flop.least) - 1, std::log2(bytes_per_flop.most) + 1};
}

/// Scans what a flop costs in bytes (for a given one the best line is found exactly), then searches around the best
/// few.
Roofline fit_both(LineFit& fit, std::span<const KernelSample> samples) {
  constexpr int steps = 128;
  constexpr std::size_t refined = 3;
  const auto [least, most] = exchange_rates(samples);
  const double step = (most - least) / steps;
  std::vector<std::array<double, 2>> scan;  // deviation, exchange rate
  for (int i = 0; i <= steps; ++i) {
    const double rate = least + i * step;
    scan.push_back({fitted(fit, std::exp2(rate), 1).line.deviation, rate});
  }
  std::ranges::sort(scan);
  Roofline best = fitted(fit, std::exp2(scan[0][1]), 1);
  for (std::size_t i = 0; i < refined; ++i) {
    const double middle = scan[i][1];
    const double rate = valley(middle - step, middle + step, 40,
                               [&](double value) { return fitted(fit, std::exp2(value), 1).line.deviation; });
    const Roofline candidate = fitted(fit, std::exp2(rate), 1);
    if (candidate.line.deviation < best.line.deviation) best = candidate;
  }
  return best;
}

Roofline fit_roofline(std::span<const KernelSample> samples) {
  LineFit fit(samples);
  const bool has_flops = std::ranges::any_of(samples, [](const KernelSample& sample) { return sample.flops > 0; });
  const bool has_bytes = std::ranges::any_of(samples, [](const KernelSample& sample) { return sample.bytes > 0; });
  const Roofline flops = fitted(fit, 1, 0);
  const Roofline bytes = fitted(fit, 0, 1);
  const Roofline& simple = has_flops && flops.line.deviation < bytes.line.deviation ? flops : bytes;
  if (!has_flops || !has_bytes) return simple;
  const Roofline both = fit_both(fit, samples);
  return no_worse(simple.line.deviation, both.line.deviation) ? simple : both;
}

double rate_of(double seconds_each) {
  const double rate = 1 / seconds_each;
  return std::isfinite(rate) ? rate : 0;
}

}  // namespace

KernelRate fit_rate(std::span<const KernelSample> samples) {
  if (samples.empty()) throw UsageError("fit of a rate: no samples; it takes one or more");
  for (const KernelSample& sample : samples) {
    const bool finite = std::isfinite(sample.flops) && std::isfinite(sample.bytes) && std::isfinite(sample.seconds);
    if (!finite || sample.flops < 0 || sample.bytes < 0 || sample.seconds <= 0) {
      throw UsageError(
          "fit of a rate: {} flops and {} bytes in {} s; seconds must be positive, the others not negative",
          sample.flops, sample.bytes, sample.seconds);
    }
  }
  const Roofline best = fit_roofline(samples);
  std::vector<double> deviations;
  for (const KernelSample& sample : samples) {
    deviations.push_back(std::abs((best.line.overhead + best.line.slope * best.work(sample)) / sample.seconds - 1));
  }
  return {.overhead_seconds = best.line.overhead,
          .flops_per_second = rate_of(best.line.slope * best.flop_weight),
          .bytes_per_second = rate_of(best.line.slope * best.byte_weight),
          .error = median(std::move(deviations))};
}

}  // namespace halograd
