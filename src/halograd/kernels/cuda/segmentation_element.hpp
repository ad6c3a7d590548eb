#pragma once

#include "halograd/kernels/cuda/packet.hpp"
#include "halograd/kernels/cuda/reduction.hpp"
#include "halograd/kernels/segmentation_loss.hpp"

#include <array>
#include <cmath>
#include <cstdint>

namespace halograd::cuda {

/// What the kernels of the segmentation loss know of it, without memory of the host's; room for `most` classes.
template <int most>
struct SegmentationShape {
  std::int64_t samples = 0;
  std::int64_t voxels = 0;
  int classes = 0;
  int ignore_label = -1;
  bool dice = false;
  std::array<float, most> weights{};

  explicit SegmentationShape(const SegmentationLossDesc& desc)
      : samples(desc.samples),
        voxels(desc.voxels),
        classes(static_cast<int>(desc.classes)),
        ignore_label(desc.ignore_label),
        dice(desc.dice != 0) {
    for (std::size_t k = 0; k < weights.size(); ++k) {
      weights[k] = k < desc.class_weights.size() ? static_cast<float>(desc.class_weights[k]) : 1.0F;
    }
  }

  [[nodiscard]] constexpr bool counts(int label) const { return label < classes && label != ignore_label; }
  /// Sums of a range of voxels of one sample: Σ w·−log p and Σ w, then Σ p·g, Σ p and Σ g of each class.
  [[nodiscard]] constexpr std::int64_t values() const { return 2 + 3 * std::int64_t{classes}; }
};

/// Blocks that share a sample: their threads have chunks of voxels (or lanes have voxels).
constexpr std::int64_t segmentation_pieces(const SegmentationLossDesc& desc, std::int64_t capacity) {
  if (desc.samples <= 0) return 1;
  const std::int64_t chunks = desc.voxels / 4 + 1;
  return pieces_for(chunks, desc.samples, 2 + 3 * desc.classes, capacity);
}

/// eᶻ⁻ᵗᵒᵖ of a class, and what it adds to the others' sum: of the class at the top what it has beyond 1, which is
/// nothing (or not a number), so that a small loss keeps its digits.
struct Exponential {
  float value = 0;
  float beside_top = 0;
};
constexpr Exponential exponential(float below, bool is_top) {
  const float value = std::exp(below);
  return {value, is_top ? value - 1.0F : value};
}

/// −log p of a class whose logit lies `below` the top; others: Σ eᶻ⁻ᵗᵒᵖ without the top's 1.
constexpr float surprise(float others, float below) {
  return std::log1p(others) - below;
}

/// The gradient of the loss by one logit. by_probability: that of the loss's Dice part by the class's p; mean: Σ p
/// times that.
struct LogitGradient {
  float entropy = 0;  ///< scale · weight of the voxel
  float mean = 0;
  [[nodiscard]] constexpr float operator()(float p, bool labelled, float by_probability) const {
    return entropy * (p - (labelled ? 1.0F : 0.0F)) + p * (by_probability - mean);
  }
};

/// What finish_segmentation makes of one class of one sample.
struct ClassOutcome {
  double loss = 0;
  double labelled = 0;  ///< what Dice's gradient by p is more where the class is the label
  double always = 0;
};
/// of_sample: [3, classes]; share: of the loss, for each class of a sample.
constexpr ClassOutcome class_outcome(const double* of_sample, std::int64_t classes, std::int64_t k, double smooth,
                                     double share) {
  const double overlap = 2 * of_sample[k] + smooth;
  const double sizes = of_sample[classes + k] + of_sample[2 * classes + k] + smooth;
  // A class that is nowhere, without smoothing, is 0 / 0: what is nowhere agrees.
  if (sizes <= 0) return {};
  const double score = overlap / sizes;
  return {share * (1 - score), -2 * share / sizes, share * score / sizes};
}

/// All classes of all samples, as threads of one block share them.
struct FinishSegmentation {
  std::int64_t samples = 0;
  std::int64_t classes = 0;
  double cross_entropy = 0;
  double smooth = 0;
  double share = 0;
  const double* sums = nullptr;
  double* dice = nullptr;

  FinishSegmentation(const SegmentationLossDesc& desc, std::int64_t all_samples, const double* all_sums, double* result)
      : samples(all_samples),
        classes(desc.classes),
        cross_entropy(desc.cross_entropy),
        smooth(desc.smooth),
        share(all_samples > 0 ? desc.dice / static_cast<double>(all_samples * desc.classes) : 0),
        sums(all_sums),
        dice(result) {}

  [[nodiscard]] constexpr std::int64_t items() const { return samples * classes; }
  /// Writes an item's gradient and returns what it adds to the loss.
  constexpr double operator()(std::int64_t item) const {
    const std::int64_t n = item / classes;
    const std::int64_t k = item % classes;
    const ClassOutcome outcome = class_outcome(sums + 2 + 3 * classes * n, classes, k, smooth, share);
    dice[2 * classes * n + k] = outcome.labelled;
    dice[2 * classes * n + classes + k] = outcome.always;
    return outcome.loss;
  }
  [[nodiscard]] constexpr SegmentationOutcome outcome(double dice_loss) const {
    // What is not a number is in the loss, also where no voxel has a weight.
    const double scale = sums[1] <= 0 ? 0 : cross_entropy / sums[1];
    return {.loss = scale * sums[0] + dice_loss, .cross_entropy_scale = scale};
  }
};

}  // namespace halograd::cuda
