#pragma once

#include "halograd/kernels/conv3d.hpp"
#include "halograd/kernels/cpu/conv_problem.hpp"

#include <memory>

namespace halograd::cpu {

/// oneDNN's convolution; weights are held in the formats it chooses.
std::unique_ptr<Conv3d> make_onednn_conv3d(const Conv3dDesc& desc, const ConvProblem& problem);

}  // namespace halograd::cpu
