#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/device/device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace halograd {

/// One message of NcclCommunicator::exchange, to or from memory of the device.
struct DeviceMessage {
  int rank = 0;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

/// Ranks that talk from GPU to GPU. Calls list their work on a queue of the rank's device and return. Sums are all
/// ranks', messages their two ranks'; what two ranks take part in must come in the same order on both. The memory is
/// Device::allocate's: NCCL may share it with other processes, for which that of Device::reserve is not made. The first
/// messages between two ranks connect them: not to be recorded; graphs with recorded calls go before the communicator
/// does. Throws ResourceError with NCCL's words where it fails.
class NcclCommunicator {
public:
  virtual ~NcclCommunicator() = default;
  /// Sends and receives all at once. Messages between two ranks pair up in the order of their lists.
  virtual void exchange(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
                        const Queue& queue) = 0;
  /// Sums over all ranks, in place; the same bits on every rank.
  virtual void sum(float* values, std::int64_t count, const Queue& queue) = 0;
  virtual void sum(double* values, std::int64_t count, const Queue& queue) = 0;
};

/// Whether NCCL is built in.
bool nccl_available();
/// Collective. For the ranks of a communicator, whose GPUs are all different ones. Throws ResourceError on all ranks
/// where it fails on any.
std::shared_ptr<NcclCommunicator> make_nccl_communicator(const Communicator& communicator, const Device& device);

}  // namespace halograd
