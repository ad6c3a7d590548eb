#pragma once

#include "halograd/plan/plan.hpp"

#include <string>

namespace halograd {

/// A step that computes, as the cost model sees it: which rate it goes by, its key among measured ones, and what it
/// takes.
struct Operation {
  std::string kind;  ///< "convolution_forward", "chain_forward", "update", …: names a KernelRate
  std::string key;   ///< the kind and all that its duration depends on: the same of any plan with the same local shapes
  double flops = 0;
  double bytes = 0;               ///< read and written in memory, each operand once
  std::int64_t out_channels = 0;  ///< of a convolution; else 0
};

/// Whether a step computes (on this rank, between messages) rather than starts or awaits a message.
bool computes(const Step& step);

/// What the step `step` of a plan is. Throws std::logic_error where it does not compute.
Operation operation_of(const Plan& plan, const Step& step);

}  // namespace halograd
