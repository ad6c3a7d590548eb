#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"
#include "halograd/tensor/box.hpp"

#include <array>
#include <cstdint>

namespace halograd {

/// What is done to each input value on its way from the file's type to f32.
enum class InputTransform {
  none,
  log1p,   ///< log(1 + x)
  window,  ///< clipped to an interval, which becomes [-1, 1]
};

/// Which dimensions run backwards: depth, height, width.
using Flips = std::array<bool, 3>;

/// One sample's hyperslab on its way into the first layer's buffer. A number x of the source becomes
/// transform(x · scale + offset) · gain + shift.
struct ConvertDesc {
  DType dtype = DType::u16;     ///< of the source
  DType dst_type = DType::f32;  ///< f32 or bf16
  double scale = 1;
  double offset = 0;
  InputTransform transform = InputTransform::none;
  std::array<double, 2> window{-1, 1};  ///< of InputTransform::window, low and high
  double gain = 1;
  double shift = 0;
  std::int64_t channels = 0;
  bool channels_first = false;  ///< source is [C,D,H,W] (else [D,H,W,C]) of `source`
  Flips flip{};                 ///< along these the source's voxels lie in reverse order
  Box source;                   ///< the voxels the source holds, global indices of the destination
  Box dst;                      ///< the voxels the destination holds (margins included); only source ∩ dst is written
};

/// dst: one sample [D,H,W,C] of `dst`. Sets `refused` to 1 where a number read, with scale and offset and transformed,
/// is not finite (one that clipping would hide counts too), and leaves it alone otherwise.
void convert_input(const Queue& queue, const ConvertDesc& desc, const void* source, void* dst, std::uint32_t* refused);

/// One sample's labels on their way to the loss.
struct LabelDesc {
  Extent extent;               ///< of source and destination
  Flips flip{};                ///< along these the source's labels lie in reverse order
  std::int64_t classes = 256;  ///< labels are below it
  int ignore_label = -1;       ///< or this one; −1: none
};

/// source, dst: [D,H,W], on the host. Returns the largest label that is neither below `classes` nor the ignore label;
/// −1: none.
int convert_labels(Backend backend, const LabelDesc& desc, const std::uint8_t* source, std::uint8_t* dst);

}  // namespace halograd
