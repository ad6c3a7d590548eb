#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/device/device.hpp"

#include <string>
#include <vector>

namespace halograd {

/// How messages and sums get from rank to rank: from the processor's memory (shared memory or MPI); between GPUs, by
/// NCCL, in the order of a queue; or from a GPU's memory through pinned host memory and then as the processor's.
enum class Transport { host, nccl, staged };

/// What one rank brings to the choice of a transport.
struct RankFacts {
  std::string device_id;    ///< Device::id: empty for the processor
  bool nccl_built = false;  ///< into its program
  bool nccl_wanted = true;  ///< HALOGRAD_NCCL does not say 0
};

struct TransportChoice {
  Transport transport = Transport::host;
  std::string description;  ///< in one line, "NCCL" or "pinned host memory and MPI: ranks 0 and 1 share a GPU"
};

/// What all ranks use, given the facts of each, in rank order: NCCL where each has a GPU of its own, it is built in and
/// not switched off on any.
TransportChoice choose_transport(const std::vector<RankFacts>& ranks);
/// Collective. The same for the ranks of a communicator, each with its own device; the description names NCCL's
/// version.
TransportChoice choose_transport(const Communicator& communicator, const Device& device);

}  // namespace halograd
