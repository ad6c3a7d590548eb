#pragma once

#include "halograd/kernels/dense.hpp"

namespace halograd::reference {

std::unique_ptr<Dense> make_dense(const DenseDesc& desc);

}  // namespace halograd::reference
