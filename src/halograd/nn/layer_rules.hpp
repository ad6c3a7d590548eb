#pragma once

#include "halograd/nn/layers.hpp"
#include "halograd/nn/parameter.hpp"

#include <span>
#include <string>
#include <vector>

namespace halograd {

/// "convolution", "batch norm", …: what summaries and errors call the layer.
std::string layer_kind(const Layer& layer);

/// The output of `layer` on `inputs` (one, but for concatenations and sums). Throws UsageError, naming the layer, where
/// they do not fit.
GlobalShape output_shape(const Layer& layer, const std::string& name, std::span<const GlobalShape> inputs);

/// The layer's arrays in the order checkpoints list them.
std::vector<ParameterSpec> layer_parameters(const Layer& layer, const std::string& name, const GlobalShape& input);

/// Forward flops of one sample in convolutions, deconvolutions and dense layers (a multiply-add counts as two); 0 for
/// the rest.
double forward_flops(const Layer& layer, const GlobalShape& input, const GlobalShape& output);

/// The window through which a layer looks at its input, 1/1/0 for those that work voxel by voxel.
Window layer_window(const Layer& layer);

}  // namespace halograd
