#include "halograd/device/cuda/runtime.hpp"

#include "halograd/core/error.hpp"
#include "halograd/device/cuda/cuda_device.hpp"
#include "halograd/device/cuda/cuda_queue.hpp"

namespace halograd::cuda {
namespace {

const CudaQueue& cuda_queue(const Queue& queue) {
  if (queue.backend() != Backend::cuda || queue.implementation() == nullptr) {
    throw UsageError("a kernel for GPUs was given a queue of backend {}", backend_name(queue.backend()));
  }
  return static_cast<const CudaQueue&>(*queue.implementation());
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  // Errors that leave the GPU usable must not turn up again in a later call.
  static_cast<void>(cudaGetLastError());
  throw ResourceError("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
}

void make_current(int device) {
  check(cudaSetDevice(device), "choosing a GPU");
}

cudaStream_t stream_of(const Queue& queue) {
  const CudaQueue& made = cuda_queue(queue);
  make_current(made.device());
  return made.stream();
}

int device_of(const Queue& queue) {
  return cuda_queue(queue).device();
}

int device_of(const Device& device) {
  if (device.backend() != Backend::cuda || device.implementation() == nullptr) {
    throw UsageError("backend {} is no GPU", backend_name(device.backend()));
  }
  return static_cast<const CudaDevice&>(*device.implementation()).index();
}

}  // namespace halograd::cuda
