#include "halograd/kernels/reference/segmentation_loss.hpp"

namespace halograd::reference {

void finish_segmentation(const SegmentationLossDesc& desc, std::int64_t samples, const double* sums,
                         SegmentationOutcome* outcome, double* dice) {
  const double weights = sums[1];
  *outcome = {};
  if (weights > 0) {
    outcome->cross_entropy_scale = desc.cross_entropy / weights;
    outcome->loss = outcome->cross_entropy_scale * sums[0];
  }
  const std::int64_t classes = desc.classes;
  const double share = samples > 0 ? desc.dice / static_cast<double>(samples * classes) : 0;
  for (std::int64_t n = 0; n < samples; ++n) {
    const double* const of_sample = sums + 2 + 3 * classes * n;
    double* const gradient = dice + 2 * classes * n;
    for (std::int64_t k = 0; k < classes; ++k) {
      const double overlap = 2 * of_sample[k] + desc.smooth;
      const double sizes = of_sample[classes + k] + of_sample[2 * classes + k] + desc.smooth;
      // A class that is nowhere, without smoothing, is 0 / 0: what is nowhere agrees.
      const double score = sizes > 0 ? overlap / sizes : 1;
      outcome->loss += share * (1 - score);
      gradient[k] = sizes > 0 ? -2 * share / sizes : 0;
      gradient[classes + k] = sizes > 0 ? share * score / sizes : 0;
    }
  }
}

}  // namespace halograd::reference
