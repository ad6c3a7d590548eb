#include "halograd/perf/fit_ranges.hpp"

#include "halograd/core/error.hpp"

namespace halograd::perf {

SizedSamples by_size(const std::string& what, std::span<const MessageSample> samples) {
  SizedSamples result{{samples.begin(), samples.end()}, {}};
  for (const MessageSample& sample : samples) {
    const bool finite = std::isfinite(sample.bytes) && std::isfinite(sample.seconds);
    if (!finite || sample.bytes <= 0 || sample.seconds <= 0 || sample.ranks < 2) {
      throw UsageError(
          "fit of {}: {} bytes between {} ranks in {} s; bytes and seconds must be positive, ranks 2 or more", what,
          sample.bytes, sample.ranks, sample.seconds);
    }
  }
  std::ranges::stable_sort(result.samples, {}, &MessageSample::bytes);
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    if (i == 0 || result.samples[i].bytes != result.samples[i - 1].bytes) result.begins.push_back(i);
  }
  if (result.begins.size() < 2) {
    throw UsageError("fit of {}: measured at {} sizes; it takes two or more", what, result.begins.size());
  }
  result.begins.push_back(result.samples.size());
  return result;
}

std::optional<double> place_break(double below, double above, const std::function<double(double)>& gap) {
  const bool grows_below = gap(below) >= 0;
  const bool grows_above = gap(above) >= 0;
  if (!grows_below && !grows_above) return std::nullopt;
  if (grows_below && grows_above) return std::sqrt(below * above);
  double grows = grows_below ? below : above;
  double shrinks = grows_below ? above : below;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = std::sqrt(grows * shrinks);
    (gap(middle) >= 0 ? grows : shrinks) = middle;
  }
  return grows;
}

}  // namespace halograd::perf
