#pragma once

#include "halograd/kernels/conv3d.hpp"

#include <memory>
#include <string>

namespace halograd::cpu {

/// Scratch memory that casts of this convolution's activations may take; a little more where it is cut.
std::int64_t cast_bytes(const Conv3dDesc& desc);

/// Whether pieces are thick enough then.
bool casts_in_small_pieces(const Conv3dDesc& desc);

/// A convolution of bf16 activations by a kernel of f32 ones, which `make` gives for a piece of it. Activations are
/// cast to and from scratch memory all at once, a sample at a time, or in slices of a sample, so that the scratch is
/// small beside them. Products are of weights that are not rounded. `prefix` goes before the implementations'
/// names; `bytes`: as cast_bytes gives them.
std::unique_ptr<Conv3d> make_cast_conv3d(const Conv3dDesc& desc, const std::string& prefix,
                                         std::unique_ptr<Conv3d> (*make)(const Conv3dDesc&), std::int64_t bytes);

/// What `make` gives, with casts where activations are bf16.
std::unique_ptr<Conv3d> make_in_f32(const Conv3dDesc& desc, std::unique_ptr<Conv3d> (*make)(const Conv3dDesc&));

}  // namespace halograd::cpu
