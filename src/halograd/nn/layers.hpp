#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/tensor/window.hpp"

#include <cstdint>
#include <string_view>
#include <variant>

namespace halograd {

// What a layer computes, as plain values. What it does to shapes, parameters and flops stands in layer_rules.hpp; what
// it becomes on one rank, in plan/.

/// 3D convolution without bias.
struct Convolution {
  std::int64_t channels = 0;
  Window window{Extent::cube(3), Extent::cube(1), Extent::cube(1)};
};

/// Ioffe and Szegedy 2015, with running averages for evaluation: new value's weight max(1 − decay, 1 / (t + 1)), so
/// that they begin as the plain mean of the first steps.
struct BatchNorm {
  double epsilon = 1e-5;
  double decay = 0.999;
};

/// z > 0 ? z : negative_slope · z; 0 is ReLU.
struct LeakyRelu {
  float negative_slope = 0.01F;
};

/// Padding counts in the average and never wins the maximum.
struct Pool {
  PoolKind kind = PoolKind::average;
  Window window{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
};

/// Keeps a value with probability `keep` and divides it by that.
struct Dropout {
  float keep = 0.8F;
};

/// Voxels and channels become one list of features, in C,D,H,W order.
struct Flatten {};

/// Fully connected, with bias.
struct FullyConnected {
  std::int64_t features = 0;
  double initial_bias = 0.1;
};

/// Mean over all elements of the global mini-batch of (prediction − target)².
struct MeanSquaredError {};

using Layer = std::variant<Convolution, BatchNorm, LeakyRelu, Pool, Dropout, Flatten, FullyConnected, MeanSquaredError>;

}  // namespace halograd
