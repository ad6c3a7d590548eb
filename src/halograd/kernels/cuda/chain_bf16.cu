#include "halograd/kernels/cuda/chain_launcher.cuh"
#include "halograd/kernels/cuda/chain_types.hpp"

namespace halograd::cuda::chain {

std::unique_ptr<Chain> make_bf16_chain(const Queue& queue, const ChainDesc& desc) {
  return std::make_unique<KernelChain<DeviceBf16, CudaLauncher>>(desc, CudaLauncher(queue));
}

}  // namespace halograd::cuda::chain
