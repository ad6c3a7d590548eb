#pragma once

#include "halograd/device/queue.hpp"

#include <cuda_runtime_api.h>

namespace halograd::cuda {

/// Throws ResourceError naming `what` was being done, where the status says that it failed.
void check(cudaError_t status, const char* what);

/// The stream behind a queue of a GPU. The queue's GPU must be the thread's current one (use_device_of).
cudaStream_t stream_of(const Queue& queue);
/// The GPU a queue belongs to.
int device_of(const Queue& queue);

}  // namespace halograd::cuda
