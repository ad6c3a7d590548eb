#include "halograd/kernels/segmentation_loss.hpp"

namespace halograd {

SegmentationOutcome finish_segmentation(const SegmentationLossDesc& desc, std::int64_t samples,
                                        std::span<const double> sums, std::span<double> dice) {
  const double weights = sums[1];
  SegmentationOutcome outcome;
  if (weights > 0) {
    outcome.cross_entropy_scale = desc.cross_entropy / weights;
    outcome.loss = outcome.cross_entropy_scale * sums[0];
  }
  const auto classes = static_cast<std::size_t>(desc.classes);
  const double share = samples > 0 ? desc.dice / static_cast<double>(samples * desc.classes) : 0;
  for (std::size_t n = 0; n < static_cast<std::size_t>(samples); ++n) {
    const auto of_sample = sums.subspan(2 + 3 * classes * n, 3 * classes);
    const auto gradient = dice.subspan(2 * classes * n, 2 * classes);
    for (std::size_t k = 0; k < classes; ++k) {
      const double overlap = 2 * of_sample[k] + desc.smooth;
      const double sizes = of_sample[classes + k] + of_sample[2 * classes + k] + desc.smooth;
      // A class that is nowhere, without smoothing, is 0 / 0: what is nowhere agrees.
      const double score = sizes > 0 ? overlap / sizes : 1;
      outcome.loss += share * (1 - score);
      gradient[k] = sizes > 0 ? -2 * share / sizes : 0;
      gradient[classes + k] = sizes > 0 ? share * score / sizes : 0;
    }
  }
  return outcome;
}

}  // namespace halograd
