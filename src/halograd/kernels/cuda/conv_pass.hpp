#pragma once

#include "halograd/kernels/cuda/conv_geometry.hpp"

#include <fmt/format.h>

#include <string>

namespace halograd::cuda {

enum class ConvPass { forward, backward_data, backward_weights };

constexpr const char* pass_name(ConvPass pass) {
  return pass == ConvPass::forward ? "forward" : pass == ConvPass::backward_data ? "backward data" : "backward weights";
}

/// "forward of 1 samples, 4 to 16 channels, 130x130x130 to 128x128x128 voxels, kernel 3x3x3, stride 1x1x1, padding
/// 0x0x0, bf16": all that a pass of a convolution is. Of a box of one, besides, the buffers and where in them it
/// begins, in numbers: " in 132x130x130 to 130x128x128 behind 67600 and 262144".
inline std::string describe(ConvPass pass, const ConvPart& whole) {
  const Conv3dDesc& desc = whole.desc;
  const auto text = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  const std::string place = desc.in == whole.in && desc.out == whole.out
                                ? ""
                                : fmt::format(" in {} to {} behind {} and {}", text(whole.in), text(whole.out),
                                              whole.x_offset, whole.y_offset);
  return fmt::format("{} of {} samples, {} to {} channels, {} to {} voxels{}, kernel {}, stride {}, padding {}, {}",
                     pass_name(pass), desc.samples, desc.in_channels, desc.out_channels, text(desc.in), text(desc.out),
                     place, text(desc.kernel), text(desc.stride), text(desc.pad_lo), precision_name(desc.precision));
}

}  // namespace halograd::cuda
