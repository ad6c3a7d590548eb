#pragma once

#include "halograd/kernels/segmentation_loss.hpp"

namespace halograd::reference {

void segmentation_sums(const SegmentationLossDesc& desc, const float* logits, const std::uint8_t* labels, double* sums);
void segmentation_gradient(const SegmentationLossDesc& desc, const float* logits, const std::uint8_t* labels,
                           double cross_entropy_scale, const double* dice, float* dlogits);

/// The sums are few: this serves both of the processor's backends.
void finish_segmentation(const SegmentationLossDesc& desc, std::int64_t samples, const double* sums,
                         SegmentationOutcome* outcome, double* dice);

}  // namespace halograd::reference
