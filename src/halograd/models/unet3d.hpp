#pragma once

#include "halograd/nn/network.hpp"

namespace halograd {

enum class UnetNorm { none, batch, instance, group };

struct Unet3dOptions {
  std::int64_t width = 128;
  std::int64_t channels = 1;  ///< of the input
  std::int64_t classes = 3;
  std::int64_t base_channels = 32;  ///< of the first convolution; all others grow and shrink with it
  UnetNorm norm = UnetNorm::batch;
  double batch_norm_decay = 0.999;
  SegmentationLoss loss;
};

/// The 3D U-Net (Çiçek et al. 2016) on whole volumes: three levels of two convolutions and a max pool, a bottom, three
/// levels of deconvolution, concatenation [up, skip] and two convolutions, a 1³ convolution to the classes. No biases,
/// He normal weights. Group norm has groups of 16 channels. Throws UsageError unless width is a multiple of 8 from 16
/// up.
Network unet3d(const Unet3dOptions& options);

}  // namespace halograd
