#pragma once

#include "halograd/device/device.hpp"
#include "halograd/device/queue.hpp"

#include <cuda_runtime_api.h>

namespace halograd::cuda {

/// Throws ResourceError naming `what` was being done, where the status says that it failed.
void check(cudaError_t status, const char* what);

/// Makes a GPU the one that this thread's CUDA calls are for.
void make_current(int device);

/// The stream behind a queue of a GPU, which becomes the thread's current one. Throws UsageError for other queues.
cudaStream_t stream_of(const Queue& queue);
/// The GPU a queue belongs to.
int device_of(const Queue& queue);
int device_of(const Device& device);

}  // namespace halograd::cuda
