#include "halograd/kernels/cuda/scratch.hpp"

#include "halograd/core/error.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace halograd::cuda {
namespace {

/// While it lives, this thread may allocate although one of its streams is being captured.
class AllocatingDuringCapture {
public:
  AllocatingDuringCapture() {
    check(cudaThreadExchangeStreamCaptureMode(&mode_), "allowing allocation during capture");
  }
  ~AllocatingDuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  AllocatingDuringCapture(const AllocatingDuringCapture&) = delete;
  AllocatingDuringCapture& operator=(const AllocatingDuringCapture&) = delete;

private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

double* scratch_of(const Queue& queue, std::int64_t doubles) {
  if (doubles > scratch_doubles) {
    throw UsageError("sums of {} numbers don't fit into {}: give a GPU fewer samples of so many classes", doubles,
                     scratch_doubles);
  }
  static std::mutex mutex;
  static std::map<std::pair<int, cudaStream_t>, double*> memory;
  const std::lock_guard lock(mutex);
  double*& of_queue = memory[{device_of(queue), stream_of(queue)}];
  if (of_queue == nullptr) {
    const AllocatingDuringCapture allocating;
    void* allocated = nullptr;
    check(cudaMalloc(&allocated, scratch_doubles * sizeof(double)), "allocating 4 MiB of scratch memory");
    of_queue = static_cast<double*>(allocated);
  }
  return of_queue;
}

}  // namespace halograd::cuda
