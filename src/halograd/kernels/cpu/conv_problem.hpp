#pragma once

#include "halograd/kernels/conv3d.hpp"
#include "halograd/kernels/cpu/onednn.hpp"

#include <string>

namespace halograd::cpu {

/// "convolution 4 to 16 channels, …": for error messages.
std::string describe(const Conv3dDesc& desc);

/// Throws UsageError for a precision that processors do not have.
void require_precision(Precision precision);

/// Whether this processor computes in it by instructions of its own.
bool has_instructions(Precision precision);

/// A convolution in oneDNN's terms: activations dense NDHWC, weights in the format that each primitive likes best. In
/// bf16 activations and weights are that, sums and the gradient of weights f32.
/// Throws UsageError where the input has a whole stride of voxels behind the last window.
struct ConvProblem {
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  explicit ConvProblem(const Conv3dDesc& desc);

  [[nodiscard]] Forward::primitive_desc forward() const;
  [[nodiscard]] BackwardData::primitive_desc backward_data(const Forward::primitive_desc& hint) const;
  [[nodiscard]] BackwardWeights::primitive_desc backward_weights(const Forward::primitive_desc& hint) const;

  dnnl::memory::desc src;
  dnnl::memory::desc dst;
  dnnl::memory::desc any_weights;
  dnnl::memory::desc any_gradient;
  dnnl::memory::desc plain_weights;
  dnnl::memory::dims strides;
  dnnl::memory::dims pad_lo;
  dnnl::memory::dims pad_hi;

private:
  bool training_;                      ///< whether the forward primitive has to be able to go before backward ones
  int (*slowness_)(std::string_view);  ///< of the forward primitive
};

}  // namespace halograd::cpu
