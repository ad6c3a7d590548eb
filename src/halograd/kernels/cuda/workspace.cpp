#include "halograd/kernels/cuda/workspace.hpp"

#include "halograd/device/cuda/cuda_memory.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace halograd::cuda {
namespace {

DeviceMemory reserved(const Queue& queue) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device_of(queue)), "asking for a GPU's memory");
  return reserve_memory(device_of(queue), static_cast<const char*>(properties.name),
                        static_cast<std::int64_t>(properties.totalGlobalMem));
}

}  // namespace

Workspace::Workspace(const Queue& queue) : memory_(reserved(queue)) {}

void Workspace::grow(std::int64_t bytes) {
  memory_.commit(bytes);
  bytes_ = std::max(bytes_, bytes);
}

std::shared_ptr<Workspace> workspace_of(const Queue& queue) {
  static std::mutex mutex;
  static std::map<std::pair<int, cudaStream_t>, std::weak_ptr<Workspace>> known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Workspace>& of_queue = known[{device_of(queue), stream_of(queue)}];
  std::shared_ptr<Workspace> workspace = of_queue.lock();
  if (!workspace) of_queue = workspace = std::make_shared<Workspace>(queue);
  return workspace;
}

}  // namespace halograd::cuda
