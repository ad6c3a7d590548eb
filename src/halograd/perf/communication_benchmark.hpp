#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/perf/fit.hpp"

#include <functional>
#include <vector>

namespace halograd {

/// What messages cost between the ranks of a communicator, measured with the classes that a training step uses
/// (HaloExchange: packing and unpacking included, by one thread as in a step; SumReduction). Medians after warm-up, of
/// the slowest rank. Sizes ascend by factors of 2.
struct CommunicationSamples {
  /// Ranks 2i and 2i + 1, both ways at once and all pairs at once, from 256 B to 16 MiB each way.
  std::vector<MessageSample> messages;
  /// Of float32 (gradients) from 256 B to 64 MiB, over 2, 4, … neighbouring ranks (all such groups at once), then all.
  std::vector<MessageSample> sums;
};

/// Collective; runs on the calling thread and takes seconds. `progress(done, of)` is called on every rank after each
/// size. One rank alone has nothing to measure: the result is empty.
CommunicationSamples measure_communication(const Communicator& ranks,
                                           const std::function<void(int, int)>& progress = {});

}  // namespace halograd
