#pragma once

#include "halograd/kernels/chain.hpp"

namespace halograd::reference {

std::unique_ptr<Chain> make_chain(const ChainDesc& desc);

}  // namespace halograd::reference
