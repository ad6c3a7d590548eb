#pragma once

#include "halograd/kernels/dense.hpp"

namespace halograd::cuda {

/// cuBLASLt's.
std::unique_ptr<Dense> make_dense(const Queue& queue, const DenseDesc& desc);

}  // namespace halograd::cuda
