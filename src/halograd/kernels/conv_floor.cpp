#include "halograd/kernels/conv_floor.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/device/queue_timing.hpp"
#include "halograd/kernels/cpu/conv_floor.hpp"
#include "halograd/kernels/cuda/conv3d.hpp"

#include <algorithm>

namespace halograd {
namespace {

/// Memory of the device with ordinary numbers in it.
DeviceMemory filled(const Device& device, const Queue& queue, DType type, std::int64_t elements) {
  const std::int64_t size = dtype_size(type);
  DeviceMemory memory = device.allocate(size * elements);
  constexpr std::int64_t period = std::int64_t{13} << 12;  // the numbers come again in every such piece
  const std::int64_t first = std::min(elements, period);
  with_activation_type(type, [&]<typename T>(T) {
    std::vector<T> values(static_cast<std::size_t>(first));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(ordinary_number(i));
    queue.copy(values.data(), memory.data(), size * first);
    queue.synchronize();
  });
  for (std::int64_t done = first; done < elements; done = std::min(elements, 2 * done)) {
    queue.copy(memory.data(), memory.data() + size * done, size * std::min(done, elements - done));
  }
  return memory;
}

/// As a step does them on a device that works by itself.
std::vector<ConvTiming> time_on(const Device& device, const Queue& queue, const Conv3dDesc& desc, int repetitions) {
  const auto conv = make_conv3d(queue, desc);  // first: it may try algorithms in memory of its own
  const DType type = activation_type(desc.precision);
  const DeviceMemory x = filled(device, queue, type, desc.samples * desc.in.volume() * desc.in_channels);
  const DeviceMemory y = filled(device, queue, type, desc.samples * desc.out.volume() * desc.out_channels);
  const DeviceMemory w = filled(device, queue, DType::f32, desc.in_channels * desc.out_channels * desc.kernel.volume());
  conv->set_weights(w.floats());
  return time_calls(desc, *conv, x.data(), y.data(), w.floats(),
                    [&](const auto& call) { return best_seconds(queue, call, repetitions); });
}

}  // namespace

std::vector<ConvTiming> time_convolution(const Device& device, const Conv3dDesc& desc, int repetitions) {
  if (desc.samples * desc.out.volume() == 0) return {};
  const Conv3dDesc alone = without_margins(desc);
  const Queue queue = device.make_queue();
  if (queue.works_at_once()) return cpu::time_convolution(alone, repetitions);
  return time_on(device, queue, alone, repetitions);
}

double conv_floor_seconds(const Device& device, const std::vector<Conv3dDesc>& convolutions, int repetitions) {
  double seconds = 0;
  for (const Conv3dDesc& desc : convolutions) {
    for (const ConvTiming& timing : time_convolution(device, desc, repetitions)) seconds += timing.seconds;
  }
  return seconds;
}

double conv_floor_bytes(const Device& device, const std::vector<Conv3dDesc>& convolutions) {
  const double workspace = device.backend() == Backend::cuda ? static_cast<double>(cuda::workspace_limit) : 0;
  double most = 0;
  for (const Conv3dDesc& desc : convolutions) {
    if (desc.samples * desc.out.volume() == 0) continue;
    const std::int64_t voxels = desc.in_channels * desc.in.volume() + desc.out_channels * desc.out.volume();
    // The weights, the same packed, and their packed gradient.
    const std::int64_t weights = 3 * desc.in_channels * desc.out_channels * desc.kernel.volume();
    // Four bytes of each, in bf16 too: a processor without its instructions computes in float32.
    most = std::max(most, 4.0 * static_cast<double>(desc.samples * voxels + weights) + workspace);
  }
  return most;
}

}  // namespace halograd
