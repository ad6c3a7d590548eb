#pragma once

#include "halograd/plan/plan.hpp"

#include <cstdint>
#include <string>

namespace halograd {

/// A step that computes, as the cost model sees it.
struct Operation {
  std::string kind;  ///< "convolution_forward", "chain", "chain_backward_sums", "update", …: names a KernelRate
  std::int64_t out_channels = 0;  ///< of a convolution; else 0
  double flops = 0;
  double bytes = 0;  ///< read and written in memory
};

/// What a step that computes is.
Operation operation_of(const Plan& plan, const Step& step);

/// The kind and all that its duration depends on, as text: the same in any plan with the same local shapes, wherever in
/// the volume they lie. "convolution_forward c4-16 k3x3x3 s1x1x1 | n1 66x128x128-64x128x128 p0x1x1"
struct OperationKey {
  std::string family;  ///< up to the bar: operations that differ in extents and samples alone
  std::string whole;
};
OperationKey operation_key(const Plan& plan, const Step& step);

}  // namespace halograd
