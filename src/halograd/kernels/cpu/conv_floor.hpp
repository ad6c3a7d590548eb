#pragma once

#include "halograd/kernels/conv3d.hpp"

#include <string>
#include <vector>

namespace halograd::cpu {

/// One call run alone: which ("forward", "backward_data", "backward_weights"), how it is done, its best time.
struct ConvTiming {
  std::string call;
  std::string implementation;
  double seconds = 0;
};

/// The least time the given convolution can take on this machine: forward, backward-data (where input_gradient) and
/// backward-weights, each run alone, `repetitions` times, on warm dense NDHWC buffers without margins, weights already
/// packed, no reorders. Takes deconvolutions as `transposed` gives them, and names their calls as the layer does.
/// Throws ResourceError where memory runs out.
std::vector<ConvTiming> time_convolution(const Conv3dDesc& desc, int repetitions);

/// The sum of `time_convolution` over several, which `bench step` compares a whole step with.
double conv_floor_seconds(const std::vector<Conv3dDesc>& convolutions, int repetitions);

}  // namespace halograd::cpu
