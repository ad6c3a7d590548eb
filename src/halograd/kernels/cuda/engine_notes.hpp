#pragma once

#include "halograd/core/types.hpp"

namespace halograd::cuda {

/// What cuDNN notes about how an engine computes.
struct EngineNotes {
  bool tensor_cores = false;
  bool narrows_inputs = false;      ///< to half precision, before it multiplies
  bool narrow_sums = false;         ///< in less than the convolution asks for
  bool nondeterministic = false;    ///< sums in an order that may differ from run to run
  bool fourier = false;             ///< transforms tiles of the volume
  bool winograd = false;            ///< likewise
  bool winograd_13 = false;         ///< on tiles so wide that rounding grows visibly
  bool shares_by_position = false;  ///< a setting shares a voxel's sum among processors by where the voxel lies
};

/// Whether an engine may be used: the same bits run after run, no precision below the one asked for and, where
/// `direct`, each voxel summed alike wherever it lies.
constexpr bool admits(const EngineNotes& notes, Precision precision, bool direct) {
  if (notes.nondeterministic || notes.narrow_sums || notes.narrows_inputs || notes.winograd_13) return false;
  // Of floats, tensor cores keep 10 bits.
  if (precision == Precision::f32 && notes.tensor_cores) return false;
  return !direct || !(notes.fourier || notes.winograd || notes.shares_by_position);
}

}  // namespace halograd::cuda
