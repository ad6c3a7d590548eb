#pragma once

#include "halograd/kernels/segmentation_loss.hpp"

namespace halograd::cuda {

void segmentation_sums(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                       const std::uint8_t* labels, double* sums);
void finish_segmentation(const Queue& queue, const SegmentationLossDesc& desc, std::int64_t samples, const double* sums,
                         SegmentationOutcome* outcome, double* dice);
void segmentation_gradient(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                           const std::uint8_t* labels, const SegmentationOutcome* outcome, const double* dice,
                           void* dlogits);

}  // namespace halograd::cuda
