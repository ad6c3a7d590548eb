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

dnnl::memory::desc activations(const Conv3dDesc& desc, std::int64_t channels, const Extent& extent) {
  const Dims dims{desc.samples, channels, extent.d, extent.h, extent.w};
  return onednn::values(activation_type(desc.precision), dims, Tag::ndhwc);
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

/// Of bf16 the older kernels are as fast forward as the batch-reduce ones, and their weights packed 4 to 10 times as
/// fast: of deep layers that takes longer than the convolution. Matrix instructions (AMX) belong to the latter.
bool prefers_older_kernels(const Conv3dDesc& desc) {
  return desc.direct || (desc.precision == Precision::bf16 && !onednn::has_amx());
}

}  // namespace

std::string describe(const Conv3dDesc& desc) {
  const auto text = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  return fmt::format("convolution of {} samples, {} to {} channels, {} to {} voxels, kernel {}, stride {}",
                     desc.samples, desc.in_channels, desc.out_channels, text(desc.in), text(desc.out),
                     text(desc.kernel), text(desc.stride));
}

void require_precision(Precision precision) {
  if (precision == Precision::tf32) throw UsageError("tf32 is a precision of GPUs; the CPU has f32 and bf16");
}

bool has_instructions(Precision precision) {
  return precision == Precision::f32 || onednn::has_bf16();
}

ConvProblem::ConvProblem(const Conv3dDesc& desc)
    : src(activations(desc, desc.in_channels, desc.in)),
      dst(activations(desc, desc.out_channels, desc.out)),
      any_weights(onednn::values(activation_type(desc.precision), weight_dims(desc), Tag::any)),
      any_gradient(onednn::f32(weight_dims(desc), Tag::any)),
      plain_weights(onednn::f32(weight_dims(desc), Tag::oidhw)),
      strides(dims(desc.stride)),
      pad_lo(dims(desc.pad_lo)),
      pad_hi(high_padding(desc)),
      training_(desc.training || desc.backwards),
      slowness_(prefers_older_kernels(desc) ? onednn::slowness_of_stable : onednn::slowness) {}

ConvProblem::Forward::primitive_desc ConvProblem::forward() const {
  const auto kind = training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return onednn::forward_desc<Forward>(slowness_, kind, direct, src, any_weights, dst, strides, pad_lo, pad_hi);
}

ConvProblem::BackwardData::primitive_desc ConvProblem::backward_data(const Forward::primitive_desc& hint) const {
  return onednn::backward_desc<BackwardData>(hint, direct, src, any_weights, dst, strides, pad_lo, pad_hi);
}

ConvProblem::BackwardWeights::primitive_desc ConvProblem::backward_weights(const Forward::primitive_desc& hint) const {
  // Where more than the first window begins in the padding below a volume and windows are more than a voxel apart, the
  // just-in-time kernels of 2.6 sum wrongly or write where they must not.
  if (strides[0] > 1 && pad_lo[0] > strides[0]) {
    return onednn::backward_desc<BackwardWeights, 1>(hint, direct, src, any_gradient, dst, strides, pad_lo, pad_hi);
  }
  return onednn::backward_desc<BackwardWeights>(hint, direct, src, any_gradient, dst, strides, pad_lo, pad_hi);
}

}  // namespace halograd::cpu
