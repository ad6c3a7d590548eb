#pragma once

#include "halograd/kernels/cuda/chain_dispatch.hpp"
#include "halograd/kernels/cuda/device_buffer.hpp"
#include "halograd/kernels/cuda/launch.cuh"

#include <cuda_bf16.h>

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

/// Runs kernels on a queue.
class CudaLauncher {
public:
  explicit CudaLauncher(const Queue& queue) : queue_(queue) {
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_of(queue)),
          "asking for the number of multiprocessors");
  }

  [[nodiscard]] int processors() const { return processors_; }
  void allocate(std::int64_t count) {
    make_current(device_of(queue_));
    scratch_ = DeviceBuffer(count * static_cast<std::int64_t>(sizeof(double)), "allocating a chain's scratch memory");
  }
  [[nodiscard]] double* scratch() const { return static_cast<double*>(scratch_.data()); }

  template <typename Kernel>
  void launch(const typename Kernel::Args& args, std::int64_t blocks) const {
    cuda::launch(queue_, "starting a chain's kernel", Grid{static_cast<std::uint32_t>(blocks), Kernel::threads},
                 run_kernel<Kernel>, args);
  }

private:
  Queue queue_;
  int processors_ = 0;
  DeviceBuffer scratch_;
};

}  // namespace halograd::cuda::chain
