#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/comm/nccl_communicator.hpp"
#include "halograd/comm/transport.hpp"
#include "halograd/device/device.hpp"

#include <functional>
#include <memory>

namespace halograd {

/// make_nccl_communicator, or what stands in for it in tests.
using NcclFactory = std::function<std::shared_ptr<NcclCommunicator>(const Communicator&, const Device&)>;

/// The way on which one activity (halos, gradients) of a rank talks to other ranks: with whom, from which device's
/// memory, in which queue's order, and how. A small value, copied by reference; activities that run at once have a
/// communicator and a queue each.
struct Link {
  /// The processor's memory. Implicit: on the CPU there is nothing else to say.
  Link(const Communicator& ranks) : communicator(ranks) {}  // NOLINT(google-explicit-constructor)
  /// Collective. `how` is what choose_transport said for all ranks of the job; `order` is a queue of `place`. Where
  /// that works at once the transport is `host` all the same. Throws ResourceError where NCCL refuses.
  Link(const Communicator& ranks, const Device& place, const Queue& order, Transport how,
       const NcclFactory& make_nccl = make_nccl_communicator);

  /// Whether a run of an Exchange or SumReduction over this link returns when its work is listed, without waiting for
  /// the device or for other ranks. If so a step may be recorded, and needs no thread for communication.
  [[nodiscard]] bool returns_when_listed() const;

  Communicator communicator;
  Device device;
  Queue queue;
  Transport transport = Transport::host;
  std::shared_ptr<NcclCommunicator> nccl;  ///< with Transport::nccl and several ranks
};

}  // namespace halograd
