#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"

#include <cstdint>
#include <vector>

namespace halograd {

/// Softmax over the channels of each voxel against an integer label, and one or both of
///     cross entropy:  Σ w[label] · −log p[label] / Σ w[label], over all voxels of the global mini-batch
///     soft Dice:      1 − mean over samples and classes of (2 Σ p·g + smooth) / (Σ p + Σ g + smooth)
/// with p the softmax, g = 1 where the label is the class, sums over a sample's voxels (Milletari et al. 2016 without
/// squares, as MONAI's DiceLoss). Voxels of the ignore label count in neither, nor do those whose label is no class
/// (whoever reads labels refuses such).
struct SegmentationLossDesc {
  DType type = DType::f32;            ///< of the logits and their gradient: f32 or bf16
  std::int64_t samples = 0;           ///< on this rank
  std::int64_t voxels = 0;            ///< of a sample on this rank
  std::int64_t classes = 0;           ///< 255 at most
  std::vector<double> class_weights;  ///< [classes]; empty: all 1
  int ignore_label = -1;              ///< −1: none
  double cross_entropy = 1;           ///< its share in the loss
  double dice = 0;                    ///< likewise
  double smooth = 1e-5;
};

/// How many sums there are for `samples` samples: Σ w·−log p and Σ w, then of each sample Σ p·g, Σ p and Σ g:
/// [classes] each.
inline std::int64_t segmentation_sum_count(const SegmentationLossDesc& desc, std::int64_t samples) {
  return 2 + 3 * desc.classes * samples;
}

/// This rank's sums, assigned. logits: [samples, voxels, classes]; labels: [samples, voxels]; sums as above.
void segmentation_sums(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                       const std::uint8_t* labels, double* sums);

/// What the sums of the whole mini-batch say, in memory of the device.
struct SegmentationOutcome {
  double loss = 0;
  double cross_entropy_scale = 0;  ///< share / Σ w, which a voxel's (p − g)·w is multiplied by; 0 where no voxel counts
};
/// `sums` over all ranks, of all `samples` samples. Assigns `outcome` and dice: [samples, 2, classes]: the gradient of
/// the Dice part of the loss by a voxel's p is dice[0]·g + dice[1].
void finish_segmentation(const Queue& queue, const SegmentationLossDesc& desc, std::int64_t samples, const double* sums,
                         SegmentationOutcome* outcome, double* dice);

/// dlogits, which may be logits: the gradient of the global loss, assigned. dice: that of this rank's samples; not read
/// without a share of Dice. Of the outcome, the scale.
void segmentation_gradient(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                           const std::uint8_t* labels, const SegmentationOutcome* outcome, const double* dice,
                           void* dlogits);

}  // namespace halograd
