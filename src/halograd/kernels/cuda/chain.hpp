#pragma once

#include "halograd/kernels/chain.hpp"

namespace halograd::cuda {

/// Throws UsageError where max pooling's window has more places than a byte can name.
std::unique_ptr<Chain> make_chain(const Queue& queue, const ChainDesc& desc);

}  // namespace halograd::cuda
