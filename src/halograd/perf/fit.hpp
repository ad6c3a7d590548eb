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

/// Linear regression of seconds on bytes (weighted so that relative errors count), in up to three ranges where the line
/// breaks: a range is split where that lowers the squared relative error markedly. Latencies and bandwidths come out
/// positive, and a longer message never costs less. Throws UsageError for fewer than two sizes.
Link fit_link(std::span<const MessageSample> samples);

/// Linear regression of log2(seconds) on log2(bytes) and log2(ranks), in up to three ranges of bytes. Where all samples
/// have one number of ranks, the exponent of ranks is that of a tree, see the definition.
ReductionFit fit_reduction(std::span<const MessageSample> samples);

/// overhead + max(flops / F, bytes / B) with the lowest median relative error.
KernelRate fit_rate(std::span<const KernelSample> samples);

}  // namespace halograd
