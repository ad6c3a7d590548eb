#pragma once

#include "halograd/kernels/conv3d.hpp"

namespace halograd {

/// A deconvolution (transposed convolution) on one rank. Output voxel i·stride − pad_lo + k, counted from the first of
/// the output buffer, gets x[i] · w[k]. The input is a dense NDHWC buffer that holds the neighbours' voxels which reach
/// into this rank's outputs; what would fall outside the output buffer is dropped.
struct Deconv3dDesc {
  std::int64_t samples = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Extent in;   ///< of the input buffer, margins included
  Extent out;  ///< of the output buffer
  Extent kernel = Extent::cube(2);
  Extent stride = Extent::cube(2);
  Extent pad_lo = {};
  bool input_gradient = true;            ///< whether backward_data will be called
  bool training = true;                  ///< whether backward_weights (and backward_data) will be called
  Precision precision = Precision::f32;  ///< see Conv3dDesc
  bool direct = false;                   ///< likewise

  [[nodiscard]] double forward_flops() const {
    return 2.0 * static_cast<double>(samples * in_channels * out_channels * in.volume() * kernel.volume());
  }
};

/// The convolution that is this deconvolution backwards: its input is our output and the other way round, its weights
/// [O,I,kd,kh,kw] are ours [in,out,kd,kh,kw] as they stand.
Conv3dDesc transposed(const Deconv3dDesc& desc);

/// A convolution seen backwards, with the members of Conv3d: x: [N,D,H,W,I] of `in`; y, dy: [N,D,H,W,O] of `out`; w,
/// dw: [I,O,kd,kh,kw], as PyTorch has them. Throws as make_conv3d does.
std::unique_ptr<Conv3d> make_deconv3d(const Queue& queue, const Deconv3dDesc& desc);

}  // namespace halograd
