#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/upsample.hpp"
#include "halograd/nn/parameter.hpp"
#include "halograd/tensor/window.hpp"

#include <cstdint>
#include <variant>
#include <vector>

namespace halograd {

// What a layer computes, as plain values. What it does to shapes, parameters and flops stands in layer_rules.hpp; what
// it becomes on one rank, in plan/.

/// 3D convolution without bias.
struct Convolution {
  std::int64_t channels = 0;
  Window window{Extent::cube(3), Extent::cube(1), Extent::cube(1)};
  Initializer initializer = Initializer::glorot_uniform;
};

/// 3D deconvolution (transposed convolution) without bias: input i adds x[i] · w[k] to output i·stride − padding + k.
struct Deconvolution {
  std::int64_t channels = 0;
  Window window{.kernel = Extent::cube(2), .stride = Extent::cube(2), .padding = {}, .transposed = true};
  Initializer initializer = Initializer::he_normal;
};

/// A volume `factor` times as large in each dimension.
struct Upsample {
  UpsampleKind kind = UpsampleKind::nearest;
  Extent factor = Extent::cube(2);
};

/// The channels of all inputs, one after the other.
struct Concatenation {};

/// The inputs added up: a residual connection.
struct Sum {};

/// Ioffe and Szegedy 2015, with running averages for evaluation: new value's weight max(1 − decay, 1 / (t + 1)), so
/// that they begin as the plain mean of the first steps.
struct BatchNorm {
  double epsilon = 1e-5;
  double decay = 0.999;
};

/// Wu and He 2018: every sample is normalised over all its voxels and the channels of a group. As many groups as
/// channels (0) is instance normalisation (Ulyanov et al. 2016). No running averages.
struct GroupNorm {
  std::int64_t groups = 0;
  double epsilon = 1e-5;
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

/// Softmax over the channels against an integer label at each voxel: cross entropy, soft Dice, or a weighted sum
/// (kernels/segmentation_loss.hpp has the formulas). Labels are as large as the network's input.
struct SegmentationLoss {
  double cross_entropy = 1;
  double dice = 0;
  std::vector<double> class_weights{};  ///< of the cross entropy, [classes]; empty: all 1
  int ignore_label = -1;                ///< voxels with it count nowhere; −1: none
};

using Layer = std::variant<Convolution, Deconvolution, Upsample, Concatenation, Sum, BatchNorm, GroupNorm, LeakyRelu,
                           Pool, Dropout, Flatten, FullyConnected, MeanSquaredError, SegmentationLoss>;

/// Whether it ends a network.
inline bool is_loss(const Layer& layer) {
  return std::holds_alternative<MeanSquaredError>(layer) || std::holds_alternative<SegmentationLoss>(layer);
}

}  // namespace halograd
