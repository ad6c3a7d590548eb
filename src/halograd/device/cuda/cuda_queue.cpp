#include "halograd/device/cuda/cuda_queue.hpp"

#include "halograd/core/error.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <nvtx3/nvToolsExt.h>

#include <array>

namespace halograd::cuda {
namespace {

struct CudaEvent final : Event::Implementation {
  CudaEvent() { check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"); }
  ~CudaEvent() override { cudaEventDestroy(event); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t event = nullptr;
};

struct CudaGraph final : Graph::Implementation {
  explicit CudaGraph(cudaGraph_t recorded) {
    const cudaError_t status = cudaGraphInstantiate(&executable, recorded, 0);
    cudaGraphDestroy(recorded);
    check(status, "preparing recorded work");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(executable); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  cudaGraphExec_t executable = nullptr;
};

cudaEvent_t event_of(const Event& event) {
  if (event.implementation() == nullptr) throw UsageError("an event that no queue of a GPU made");
  return static_cast<CudaEvent&>(*event.implementation()).event;
}

}  // namespace

CudaQueue::CudaQueue(int device, Priority priority) : device_(device) {
  make_current(device_);
  int lowest = 0;
  int highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for a GPU's priorities");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority == Priority::high ? highest : lowest),
        "making a queue of a GPU");
}

CudaQueue::~CudaQueue() {
  // Work that is still listed is done first.
  cudaStreamDestroy(stream_);
}

void CudaQueue::copy(const void* from, void* to, std::int64_t bytes) {
  make_current(device_);
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_), "a copy");
}

void CudaQueue::clear(void* to, std::int64_t bytes) {
  make_current(device_);
  check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream_), "clearing memory");
}

Event CudaQueue::make_event() {
  make_current(device_);
  return Event(std::make_shared<CudaEvent>());
}

void CudaQueue::record(const Event& event) {
  make_current(device_);
  check(cudaEventRecord(event_of(event), stream_), "recording an event");
}

void CudaQueue::wait(const Event& event) {
  make_current(device_);
  check(cudaStreamWaitEvent(stream_, event_of(event), 0), "waiting for an event");
}

void CudaQueue::synchronize() {
  make_current(device_);
  check(cudaStreamSynchronize(stream_), "the GPU's work failed");
}

// One range a thread at a time, whichever queue the work is for: profilers show it above all that the thread lists.
void CudaQueue::label(std::string_view what) {
  static thread_local bool open = false;
  if (open) nvtxRangePop();
  std::array<char, 128> text{};
  what.copy(text.data(), text.size() - 1);
  open = !what.empty();
  if (open) nvtxRangePushA(text.data());
}

void CudaQueue::begin_recording() {
  make_current(device_);
  // Other threads may allocate and wait meanwhile.
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning to record work");
}

Graph CudaQueue::end_recording() {
  make_current(device_);
  cudaGraph_t recorded = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream_, &recorded);
  // What was refused meanwhile must not turn up as an error of the next kernel.
  static_cast<void>(cudaGetLastError());
  check(status, "recording work");
  return Graph(std::make_shared<CudaGraph>(recorded));
}

void CudaQueue::launch(const Graph& graph) {
  make_current(device_);
  check(cudaGraphLaunch(static_cast<CudaGraph&>(*graph.implementation()).executable, stream_),
        "launching recorded work");
}

}  // namespace halograd::cuda
