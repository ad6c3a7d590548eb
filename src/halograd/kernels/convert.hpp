#pragma once

#include "halograd/core/types.hpp"
#include "halograd/kernels/backend.hpp"
#include "halograd/tensor/box.hpp"

namespace halograd {

/// What is done to each input value on its way from the file's type to f32.
enum class InputTransform { none, log1p };

/// One sample's hyperslab on its way into the first layer's buffer.
struct ConvertDesc {
  DType dtype = DType::u16;
  InputTransform transform = InputTransform::none;
  std::int64_t channels = 0;
  bool channels_first = false;  ///< source is [C,D,H,W] (else [D,H,W,C]) of `source`
  Box source;                   ///< the voxels the source holds, global indices
  Box dst;                      ///< the voxels the destination holds (margins included); only source ∩ dst is written
};

/// dst: one sample [D,H,W,C] of `dst`. Returns whether every value written is finite.
bool convert_input(Backend backend, const ConvertDesc& desc, const void* source, float* dst);

}  // namespace halograd
