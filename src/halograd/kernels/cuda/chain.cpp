#include "halograd/kernels/cuda/chain.hpp"

#include "halograd/kernels/cuda/chain_check.hpp"
#include "halograd/kernels/cuda/chain_types.hpp"

namespace halograd::cuda {

std::unique_ptr<Chain> make_chain(const Queue& queue, const ChainDesc& desc) {
  chain::check_chain(desc);
  return desc.type == DType::bf16 ? chain::make_bf16_chain(queue, desc) : chain::make_f32_chain(queue, desc);
}

}  // namespace halograd::cuda
