#pragma once

#include "halograd/core/error.hpp"
#include "halograd/core/types.hpp"

namespace halograd::reference {

/// Throws UsageError unless buffers are of floats.
inline void expect_f32(DType type) {
  if (type != DType::f32) throw UsageError("the reference backend computes in f32 only");
}
/// Likewise where another precision is asked for.
inline void expect_f32(Precision precision) {
  if (precision != Precision::f32) throw UsageError("the reference backend computes in f32 only");
}

}  // namespace halograd::reference
