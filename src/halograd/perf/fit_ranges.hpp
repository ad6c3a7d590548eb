#pragma once

#include "halograd/core/median.hpp"
#include "halograd/perf/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace halograd::perf {

/// Samples in ascending order of their bytes, and where each size begins (then the end).
struct SizedSamples {
  std::vector<MessageSample> samples;
  std::vector<std::size_t> begins;

  [[nodiscard]] std::size_t sizes() const { return begins.size() - 1; }
  [[nodiscard]] std::span<const MessageSample> of_sizes(std::size_t from, std::size_t to) const {
    return std::span(samples).subspan(begins[from], begins[to] - begins[from]);
  }
  [[nodiscard]] double bytes_of(std::size_t size) const { return samples[begins[size]].bytes; }
};

/// Throws UsageError, naming `what` is fitted, for samples that can't be and for fewer than two sizes.
SizedSamples by_size(const std::string& what, std::span<const MessageSample> samples);

/// From where on, between two measured sizes, the upper of two ranges holds: `gap(bytes)` is what it costs more than
/// the lower. Where the two meet, else the middle; nothing where the upper would cost less at both sizes.
std::optional<double> place_break(double below, double above, const std::function<double(double)>& gap);

constexpr std::size_t most_ranges = 3;
constexpr std::size_t fewest_sizes = 3;  ///< in a range of several
/// What a break must reduce the variance of the (logarithms of the) deviations to. The variance is per degree of
/// freedom, else noise alone would earn breaks: two lines always fit nine points better than one.
constexpr double worthwhile_reduction = 0.5;
/// Relative deviations (root of their mean square) that need no break: below what a measurement repeats to.
constexpr double good_deviation = 0.01;

/// Regression in up to most_ranges ranges of bytes, over all break points. `Range` is LinkRange or ReductionRange.
template <typename Range>
class RangeFit {
public:
  using Fit = std::function<Range(std::span<const MessageSample>)>;
  using Seconds = std::function<double(const Range&, double bytes, std::int64_t ranks)>;

  RangeFit(const SizedSamples& samples, int coefficients, const Fit& fit, Seconds seconds)
      : samples_(samples), coefficients_(coefficients), seconds_(std::move(seconds)) {
    const auto [fewest, most] = std::ranges::minmax(samples.samples, {}, &MessageSample::ranks);
    fewest_ranks_ = fewest.ranks;
    most_ranks_ = most.ranks;
    const std::size_t sizes = samples.sizes();
    parts_.assign((sizes + 1) * (sizes + 1), {});
    for (std::size_t from = 0; from < sizes; ++from) {
      for (std::size_t to = from + 1; to <= sizes; ++to) {
        const bool whole = from == 0 && to == sizes;
        if (whole || to - from >= fewest_sizes) part(from, to) = fit_part(fit, samples.of_sizes(from, to));
      }
    }
  }

  [[nodiscard]] std::vector<Range> best() {
    Cuts chosen{0, samples_.sizes()};
    double allowed = variance(chosen);
    for (std::size_t ranges = 2; ranges <= most_ranges; ++ranges) {
      allowed *= worthwhile_reduction;
      const double count = static_cast<double>(samples_.samples.size());
      if (std::sqrt(squared_error(chosen) / count) <= good_deviation) break;
      const std::optional<Cuts> cuts = best_cuts(ranges);
      if (!cuts || variance(*cuts) >= allowed) continue;
      chosen = *cuts;
      allowed = variance(chosen);
    }
    return ranges_of(chosen);
  }

private:
  using Cuts = std::vector<std::size_t>;  // the first size of each range, then the number of sizes
  struct Part {
    Range range;
    double squared_error = 0;  // of the logarithms: twice as long is as bad as half as long
  };

  Part& part(std::size_t from, std::size_t to) { return parts_[from * (samples_.sizes() + 1) + to]; }

  Part fit_part(const Fit& fit, std::span<const MessageSample> samples) const {
    Part result{fit(samples)};
    std::vector<double> deviations;
    for (const MessageSample& sample : samples) {
      const double ratio = seconds_(result.range, sample.bytes, sample.ranks) / sample.seconds;
      deviations.push_back(std::abs(ratio - 1));
      result.squared_error += std::log(ratio) * std::log(ratio);
    }
    result.range.error = median(std::move(deviations));
    return result;
  }

  // What the range above costs more, relatively; for the number of ranks for which that is least.
  [[nodiscard]] double gap(const Range& below, const Range& above, double bytes) const {
    const auto relative = [&](std::int64_t ranks) {
      return seconds_(above, bytes, ranks) / seconds_(below, bytes, ranks) - 1;
    };
    return std::min(relative(fewest_ranks_), relative(most_ranks_));
  }

  [[nodiscard]] std::optional<double> break_at(std::size_t from, std::size_t at, std::size_t to) {
    const Range& below = part(from, at).range;
    const Range& above = part(at, to).range;
    return place_break(samples_.bytes_of(at - 1), samples_.bytes_of(at),
                       [&](double bytes) { return gap(below, above, bytes); });
  }

  [[nodiscard]] double squared_error(const Cuts& cuts) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) sum += part(cuts[i], cuts[i + 1]).squared_error;
    return sum;
  }

  [[nodiscard]] double variance(const Cuts& cuts) {
    const int ranges = static_cast<int>(cuts.size()) - 1;
    const int taken = coefficients_ * ranges + ranges - 1;  // a break point is fitted, too
    const int freedom = static_cast<int>(samples_.samples.size()) - taken;
    if (freedom < 1) return ranges == 1 ? squared_error(cuts) : std::numeric_limits<double>::infinity();
    return squared_error(cuts) / freedom;
  }

  // The cuts into so many ranges with the least squared error, of those at which no longer message costs less.
  [[nodiscard]] std::optional<Cuts> best_cuts(std::size_t ranges) {
    std::optional<Cuts> best;
    Cuts cuts{0};
    const auto extend = [&](const auto& self) -> void {
      const std::size_t left = ranges - (cuts.size() - 1);
      const std::size_t from = cuts.back();
      const std::size_t end = samples_.sizes();
      for (std::size_t to = left == 1 ? end : from + fewest_sizes; to + (left - 1) * fewest_sizes <= end; ++to) {
        const bool grows = from == 0 || break_at(cuts[cuts.size() - 2], from, to).has_value();
        if (!grows) continue;
        cuts.push_back(to);
        if (left > 1) {
          self(self);
        } else if (!best || squared_error(cuts) < squared_error(*best)) {
          best = cuts;
        }
        cuts.pop_back();
      }
    };
    if (samples_.sizes() >= ranges * fewest_sizes) extend(extend);
    return best;
  }

  [[nodiscard]] std::vector<Range> ranges_of(const Cuts& cuts) {
    std::vector<Range> result;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      result.push_back(part(cuts[i], cuts[i + 1]).range);
      result.back().from_bytes = i == 0 ? 0 : *break_at(cuts[i - 1], cuts[i], cuts[i + 1]);
    }
    return result;
  }

  const SizedSamples& samples_;
  int coefficients_;
  Seconds seconds_;
  std::int64_t fewest_ranks_ = 0;
  std::int64_t most_ranks_ = 0;
  std::vector<Part> parts_;  // [first size][size behind the last]
};

}  // namespace halograd::perf
