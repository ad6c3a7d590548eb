#pragma once

#include "halograd/kernels/chain.hpp"

namespace halograd::cuda::chain {

// One file of kernels for each type of activations: they compile side by side.
std::unique_ptr<Chain> make_f32_chain(const Queue& queue, const ChainDesc& desc);
std::unique_ptr<Chain> make_bf16_chain(const Queue& queue, const ChainDesc& desc);

}  // namespace halograd::cuda::chain
