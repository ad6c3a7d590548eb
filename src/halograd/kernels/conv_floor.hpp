#pragma once

#include "halograd/device/device.hpp"
#include "halograd/kernels/conv_timing.hpp"

#include <vector>

namespace halograd {

/// The least time the given convolution can take on this device: forward, backward-data (where input_gradient) and
/// backward-weights, each run alone, the best of `repetitions`, on warm dense NDHWC buffers without margins, weights
/// already packed. Takes deconvolutions as `transposed` gives them, and names their calls as the layer does. On a GPU
/// the gradient of the weights counts until it lies in plain order. Throws ResourceError where memory runs out.
std::vector<ConvTiming> time_convolution(const Device& device, const Conv3dDesc& desc, int repetitions);

/// The sum of `time_convolution` over several, which `bench step` compares a whole step with.
double conv_floor_seconds(const Device& device, const std::vector<Conv3dDesc>& convolutions, int repetitions);

/// Bytes of the device that timing the largest of them takes, at most but for rounding.
double conv_floor_bytes(const Device& device, const std::vector<Conv3dDesc>& convolutions);

}  // namespace halograd
