#pragma once

#include "halograd/perf/machine.hpp"

#include <span>

namespace halograd {

/// One measured message or sum.
struct MessageSample {
  double bytes = 0;
  std::int64_t ranks = 2;
  double seconds = 0;
};

/// One measured operation.
struct KernelSample {
  double flops = 0;
  double bytes = 0;
  double seconds = 0;
};

/// Linear regression of seconds on bytes (of least squared logarithms of line over measured, so that relative errors
/// count, and too little as much as too much), in up to three ranges of three sizes or more where the line breaks: a
/// range is split where that at least halves the variance of the deviations from what is over 1%. Latencies come out
/// not negative, bandwidths positive and finite, and a longer message never costs less. Each range's `error` is its
/// median relative deviation. Throws UsageError for fewer than two sizes, and for samples that are not positive.
LinkRanges fit_link(std::span<const MessageSample> samples);

/// Linear regression of log2(seconds) on log2(bytes) and log2(ranks), in up to three ranges of bytes, likewise: a
/// longer sum never costs less over any measured number of ranks, nor one over more ranks. Where a range's samples have
/// one number of ranks, its exponent of ranks is that of theory, between a tree's latency and a ring's bandwidth (see
/// the definition), and the constant such that the fit holds for the ranks measured.
ReductionFit fit_reduction(std::span<const MessageSample> samples);

/// overhead + max(flops / F, bytes / B) with the least mean relative deviation, absolute values, so that half of the
/// samples can't be missed (as the lowest median would allow) and outliers do not count for more; `error` is the
/// median. A part that the samples lack, or that explains nothing of them, has rate 0: it costs nothing. channel_tile
/// stays 1: flops are fitted as they are given, rounded up or not. Throws UsageError for no samples, and for seconds
/// that are not positive.
KernelRate fit_rate(std::span<const KernelSample> samples);

}  // namespace halograd
