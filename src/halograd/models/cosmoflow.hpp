#pragma once

#include "halograd/nn/network.hpp"

namespace halograd {

struct CosmoflowOptions {
  std::int64_t width = 128;
  bool batch_norm = true;
  float dropout_keep = 0.8F;
  PoolKind pool = PoolKind::average;
  std::int64_t pool_window = 3;  ///< 3 (padding 1) or 2 (padding 0)
  double batch_norm_decay = 0.999;
};

/// The extended CosmoFlow network (paper, section IV and Table I): seven convolutions with pools where they leave at
/// least 2 voxels, three dense layers, mean squared error on four targets. Throws UsageError unless width is a multiple
/// of 16 from 32 up.
Network cosmoflow(const CosmoflowOptions& options);

}  // namespace halograd
