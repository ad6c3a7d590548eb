#pragma once

#include "halograd/comm/link.hpp"
#include "halograd/device/device.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace halograd::testing {

enum class CallKind {
  copy,
  clear,
  record,
  wait,
  synchronize,
  label,
  begin_recording,
  end_recording,
  launch,
  exchange,  ///< of the stand-in for NCCL
  sum,
};

/// What was asked of a queue.
struct QueueCall {
  CallKind kind = CallKind::copy;
  int queue = 0;
  std::string label;  ///< that of the queue at the time
  int event = -1;     ///< of record and wait
  int graph = -1;     ///< of end_recording and launch
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t bytes = 0;
  int communicator = -1;  ///< of exchange and sum
  std::vector<DeviceMessage> sends;
  std::vector<DeviceMessage> receives;
  std::thread::id thread;  ///< who asked
};

/// "copy", "exchange" …
const char* name_of(CallKind kind);

enum class MemoryKind { device, pinned, other };

struct RecordingOptions {
  std::string id = "stand-in";
  /// Whether its queues say that they record work. It is done at once all the same, and launching a graph does nothing.
  bool can_record = false;
  /// The kind of call that throws ResourceError while a queue records, as what a device can't record does.
  std::optional<CallKind> refused_in_recordings{};
  Backend backend = Backend::cpu;  ///< or reference: whose kernels run on it
};

/// A device for tests that is no device: its memory is the host's, its queues do at once what they are asked for and
/// write it into one list, and kernels on them are the processor's. But its queues do not claim to work at
/// once (Queue::works_at_once), so that whoever uses it orders work by events as on a GPU. Of value here, copied by
/// reference.
class RecordingDevice {
public:
  explicit RecordingDevice(RecordingOptions options = {});

  [[nodiscard]] Device device() const;
  /// All calls so far, of all queues, in order.
  [[nodiscard]] std::vector<QueueCall> calls() const;
  void forget_calls() const;
  /// Which of this device's memories an address lies in.
  [[nodiscard]] MemoryKind kind_of(const void* address) const;
  /// Makes stand-ins for NCCL that write into the same list and talk by MPI: each call waits for the other ranks', so
  /// that ranks which call in unlike order never end.
  [[nodiscard]] NcclFactory nccl() const;

  class State;

private:
  std::shared_ptr<State> state_;
};

}  // namespace halograd::testing
