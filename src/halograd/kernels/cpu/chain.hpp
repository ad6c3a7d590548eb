#pragma once

#include "halograd/kernels/chain.hpp"

namespace halograd::cpu {

/// Throws UsageError where max pooling's window has more places than a byte can name.
std::unique_ptr<Chain> make_chain(const ChainDesc& desc);

}  // namespace halograd::cpu
