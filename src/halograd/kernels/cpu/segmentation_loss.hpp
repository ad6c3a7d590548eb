#pragma once

#include "halograd/kernels/segmentation_loss.hpp"

namespace halograd::cpu {

void segmentation_sums(const SegmentationLossDesc& desc, const float* logits, const std::uint8_t* labels, double* sums);
void segmentation_gradient(const SegmentationLossDesc& desc, const float* logits, const std::uint8_t* labels,
                           double cross_entropy_scale, std::span<const double> dice, float* dlogits);

}  // namespace halograd::cpu
