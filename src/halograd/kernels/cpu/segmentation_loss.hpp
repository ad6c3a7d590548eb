#pragma once

#include "halograd/kernels/segmentation_loss.hpp"

namespace halograd::cpu {

void segmentation_sums(const SegmentationLossDesc& desc, const void* logits, const std::uint8_t* labels, double* sums);
void segmentation_gradient(const SegmentationLossDesc& desc, const void* logits, const std::uint8_t* labels,
                           double cross_entropy_scale, const double* dice, void* dlogits);

}  // namespace halograd::cpu
