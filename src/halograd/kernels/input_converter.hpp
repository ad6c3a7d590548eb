#pragma once

#include "halograd/device/device.hpp"
#include "halograd/kernels/convert.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halograd {

/// Brings samples from the host's memory to a device and converts them there, so that the bus carries the file's 16
/// bits: piece by piece through two pinned buffers, one being filled while the other travels. On the processor it just
/// converts. Works on `queue`, and beside it on queues of its own.
class InputConverter {
public:
  InputConverter(const Device& device, const Queue& queue);

  /// Begins a mini-batch of at most `count` samples.
  void begin(std::int64_t count);
  /// The next sample. `source` is on the host and may change as soon as this returns; dst is on the device.
  void convert(const ConvertDesc& desc, const void* source, void* dst);
  /// Likewise, `count` labels.
  void copy_labels(const std::uint8_t* source, std::uint8_t* dst, std::int64_t count);
  /// Waits until all is done; the first sample, counted from begin(), of which a number was refused; −1: none.
  std::int64_t finish();

private:
  struct Pinned {
    Queue queue;
    DeviceMemory memory;
    Event sent;
  };
  void send(const void* source, void* to, std::int64_t bytes);

  Device device_;
  Queue queue_;
  std::array<Pinned, 2> pinned_;
  std::int64_t count_ = 0;  ///< of samples since begin()
  Event converted_;
  DeviceMemory raw_;      ///< a sample as the file has it
  DeviceMemory refused_;  ///< one word a sample
  DeviceMemory refused_on_host_;
};

}  // namespace halograd
