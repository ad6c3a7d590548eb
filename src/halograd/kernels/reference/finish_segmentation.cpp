#include "halograd/kernels/reference/segmentation_loss.hpp"

namespace halograd::reference {

void finish_segmentation(const SegmentationLossDesc& desc, std::int64_t samples, const double* sums,
                         SegmentationOutcome* outcome, double* dice) {
  // Conditions are such that what is not a number is in the loss.
  const double scale = sums[1] <= 0 ? 0 : desc.cross_entropy / sums[1];
  *outcome = {.loss = scale * sums[0], .cross_entropy_scale = scale};
  const std::int64_t classes = desc.classes;
  const double share = samples > 0 ? desc.dice / static_cast<double>(samples * classes) : 0;
  for (std::int64_t n = 0; n < samples; ++n) {
    const double* const of_sample = sums + 2 + 3 * classes * n;
    double* const gradient = dice + 2 * classes * n;
    for (std::int64_t k = 0; k < classes; ++k) {
      const double overlap = 2 * of_sample[k] + desc.smooth;
      const double sizes = of_sample[classes + k] + of_sample[2 * classes + k] + desc.smooth;
      // A class that is nowhere, without smoothing, is 0 / 0: what is nowhere agrees.
      const bool nowhere = sizes <= 0;
      const double score = nowhere ? 1 : overlap / sizes;
      outcome->loss += share * (1 - score);
      gradient[k] = nowhere ? 0 : -2 * share / sizes;
      gradient[classes + k] = nowhere ? 0 : share * score / sizes;
    }
  }
}

}  // namespace halograd::reference
