#pragma once

#include "halograd/device/cuda/runtime.hpp"
#include "halograd/kernels/cuda/chain_dispatch.hpp"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <memory>

namespace halograd::cuda::chain {

/// Bf16 that the GPU itself rounds, two numbers by one instruction.
struct DeviceBf16 {
  std::uint16_t bits;
};

template <>
struct Codec<DeviceBf16> : Codec<Bf16> {
  static __device__ std::uint32_t narrow(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
  static __device__ std::uint32_t narrow(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
};

/// A block's threads as one of them sees it: `each` runs a stage on all and waits for all, `last` need not wait.
template <typename Thread>
struct DeviceTeam {
  Thread me;

  __device__ std::uint32_t block() const { return me.block; }
  template <typename Stage>
  __device__ void each(const Stage& stage) {
    stage(me);
    __syncthreads();
  }
  template <typename Stage>
  __device__ void last(const Stage& stage) {
    stage(me);
  }
};

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::threads, Kernel::blocks_per_processor)
    run_kernel(const __grid_constant__ typename Kernel::Args args) {
  __shared__ typename Kernel::Shared shared;
  DeviceTeam<typename Kernel::Thread> team{{blockIdx.x, threadIdx.x}};
  Kernel::run(team, args, shared);
}

/// Runs kernels on a queue's stream.
class CudaLauncher {
public:
  explicit CudaLauncher(const Queue& queue) : stream_(stream_of(queue)) {
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_of(queue)),
          "asking for the number of multiprocessors");
  }

  [[nodiscard]] int processors() const { return processors_; }
  void allocate(std::int64_t count) {
    double* memory = nullptr;
    const auto bytes = static_cast<std::size_t>(count) * sizeof(double);
    if (bytes > 0) check(cudaMalloc(&memory, bytes), "allocating a chain's scratch memory");
    scratch_.reset(memory);
  }
  [[nodiscard]] double* scratch() const { return scratch_.get(); }

  template <typename Kernel>
  void launch(const typename Kernel::Args& args, std::int64_t blocks) const {
    run_kernel<Kernel><<<static_cast<unsigned>(blocks), Kernel::threads, 0, stream_>>>(args);
    check(cudaGetLastError(), "starting a chain's kernel");
  }

private:
  struct Free {
    void operator()(double* memory) const { static_cast<void>(cudaFree(memory)); }
  };
  cudaStream_t stream_;
  int processors_ = 0;
  std::unique_ptr<double, Free> scratch_;
};

}  // namespace halograd::cuda::chain
