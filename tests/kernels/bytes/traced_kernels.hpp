#pragma once

#include "kernels/bytes/memory_trace.hpp"

#include <string>
#include <vector>

namespace halograd::test {

/// Times the least, of a kernel that moves that, save for a channel's few numbers.
constexpr double tight = 1.001;

/// A kernel on one shape, and what it moved there.
struct TracedKernel {
  std::string kernel;
  std::string shape;
  KernelBytes bytes;
  double at_most = tight;  ///< times the least
};

/// Every kernel of chains, on networks' shapes.
std::vector<TracedKernel> traced_chains();
std::vector<TracedKernel> traced_losses();
/// Input, halos, upsampling.
std::vector<TracedKernel> traced_volumes();
/// Weights, their updates, and what a dense head reads.
std::vector<TracedKernel> traced_weights();

}  // namespace halograd::test
