#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/perf/fit.hpp"

#include <functional>
#include <vector>

namespace halograd {

/// What messages cost between the ranks of a communicator, measured with the classes that a training step uses
/// (HaloExchange: packing and unpacking included; SumReduction). Medians after warm-up, of the slowest rank.
struct CommunicationSamples {
  std::vector<MessageSample> messages;  ///< ping-pong between two neighbours, both ways at once, from 256 B to 16 MiB
  std::vector<MessageSample> sums;      ///< of float32 (gradients) over 2, 4, … ranks and all, from 256 B to 64 MiB
};

/// Collective. `progress(done, of)` is called on every rank after each size.
CommunicationSamples measure_communication(const Communicator& ranks,
                                           const std::function<void(int, int)>& progress = {});

}  // namespace halograd
