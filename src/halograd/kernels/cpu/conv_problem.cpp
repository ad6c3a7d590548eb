#include "halograd/kernels/cpu/conv_problem.hpp"

#include <algorithm>

namespace halograd::cpu {
namespace {

using onednn::Tag;
using Dims = dnnl::memory::dims;

constexpr auto direct = dnnl::algorithm::convolution_direct;

Dims dims(const Extent& extent) {
  return {extent.d, extent.h, extent.w};
}

Dims activation_dims(std::int64_t samples, std::int64_t channels, const Extent& extent) {
  return {samples, channels, extent.d, extent.h, extent.w};
}

Dims weight_dims(const Conv3dDesc& desc) {
  return {desc.out_channels, desc.in_channels, desc.kernel.d, desc.kernel.h, desc.kernel.w};
}

/// Zeros behind the last voxel: what the last output's window lacks. Where the input has voxels to spare, none.
Dims high_padding(const Conv3dDesc& desc) {
  Dims result(3);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t needed = (desc.out[i] - 1) * desc.stride[i] + desc.kernel[i] - desc.pad_lo[i];
    if (needed + desc.stride[i] <= desc.in[i]) {
      throw UsageError("{}: input voxels behind the last window; narrow the input buffer", describe(desc));
    }
    result[static_cast<std::size_t>(i)] = std::max<std::int64_t>(0, needed - desc.in[i]);
  }
  return result;
}

}  // namespace

std::string describe(const Conv3dDesc& desc) {
  const auto text = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  return fmt::format("convolution of {} samples, {} to {} channels, {} to {} voxels, kernel {}, stride {}",
                     desc.samples, desc.in_channels, desc.out_channels, text(desc.in), text(desc.out),
                     text(desc.kernel), text(desc.stride));
}

ConvProblem::ConvProblem(const Conv3dDesc& desc)
    : src(onednn::f32(activation_dims(desc.samples, desc.in_channels, desc.in), Tag::ndhwc)),
      dst(onednn::f32(activation_dims(desc.samples, desc.out_channels, desc.out), Tag::ndhwc)),
      any_weights(onednn::f32(weight_dims(desc), Tag::any)),
      plain_weights(onednn::f32(weight_dims(desc), Tag::oidhw)),
      strides(dims(desc.stride)),
      pad_lo(dims(desc.pad_lo)),
      pad_hi(high_padding(desc)),
      training_(desc.training || desc.backwards),
      stable_(desc.direct) {}

ConvProblem::Forward::primitive_desc ConvProblem::forward() const {
  const auto kind = training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return onednn::forward_desc<Forward>(stable_ ? onednn::slowness_of_stable : onednn::slowness, kind, direct, src,
                                       any_weights, dst, strides, pad_lo, pad_hi);
}

ConvProblem::BackwardData::primitive_desc ConvProblem::backward_data(const Forward::primitive_desc& hint) const {
  return onednn::backward_desc<BackwardData>(hint, direct, src, any_weights, dst, strides, pad_lo, pad_hi);
}

ConvProblem::BackwardWeights::primitive_desc ConvProblem::backward_weights(const Forward::primitive_desc& hint) const {
  // Where more than the first window begins in the padding below a volume and windows are more than a voxel apart, the
  // just-in-time kernels of 2.6 sum wrongly or write where they must not.
  if (strides[0] > 1 && pad_lo[0] > strides[0]) {
    return onednn::backward_desc<BackwardWeights, 1>(hint, direct, src, any_weights, dst, strides, pad_lo, pad_hi);
  }
  return onednn::backward_desc<BackwardWeights>(hint, direct, src, any_weights, dst, strides, pad_lo, pad_hi);
}

}  // namespace halograd::cpu
