#pragma once

#include "halograd/kernels/dense.hpp"

#include <memory>

namespace halograd::cpu {

/// oneDNN's inner product on plain [O,I] weights. Throws ResourceError where it has none for the shape.
std::unique_ptr<Dense> make_dense(const DenseDesc& desc);

}  // namespace halograd::cpu
