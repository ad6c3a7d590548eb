#include "halograd/kernels/cuda/chain_launcher.cuh"
#include "halograd/kernels/cuda/chain_types.hpp"

namespace halograd::cuda::chain {

std::unique_ptr<Chain> make_f32_chain(const Queue& queue, const ChainDesc& desc) {
  return std::make_unique<KernelChain<float, CudaLauncher>>(desc, CudaLauncher(queue));
}

}  // namespace halograd::cuda::chain
