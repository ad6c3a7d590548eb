#include "halograd/kernels/reference/segmentation_loss.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace halograd::reference {
namespace {

bool counts(const SegmentationLossDesc& desc, int label) {
  return label < desc.classes && label != desc.ignore_label;
}

double weight_of(const SegmentationLossDesc& desc, int label) {
  return desc.class_weights.empty() ? 1 : desc.class_weights[static_cast<std::size_t>(label)];
}

/// −log p of the classes of one voxel, one by one: log Σ exp(z − z_k).
class Softmax {
public:
  Softmax(const float* logits, std::int64_t classes) : logits_(logits) {
    top_ = *std::max_element(logits, logits + classes);
    for (std::int64_t k = 0; k < classes; ++k) sum_ += std::exp(static_cast<double>(logits[k] - top_));
  }
  [[nodiscard]] double surprise(std::int64_t k) const {
    return std::log(sum_) - (static_cast<double>(logits_[k]) - static_cast<double>(top_));
  }
  [[nodiscard]] double probability(std::int64_t k) const { return std::exp(-surprise(k)); }

private:
  const float* logits_;
  float top_ = 0;
  double sum_ = 0;
};

}  // namespace

void segmentation_sums(const SegmentationLossDesc& desc, const float* logits, const std::uint8_t* labels,
                       double* sums) {
  std::fill_n(sums, segmentation_sum_count(desc, desc.samples), 0.0);
  for (std::int64_t v = 0; v < desc.samples * desc.voxels; ++v) {
    const int label = labels[v];
    if (!counts(desc, label)) continue;
    const Softmax softmax(logits + v * desc.classes, desc.classes);
    sums[0] += weight_of(desc, label) * softmax.surprise(label);
    sums[1] += weight_of(desc, label);
    double* const of_sample = sums + 2 + v / desc.voxels * 3 * desc.classes;
    of_sample[label] += softmax.probability(label);
    of_sample[2 * desc.classes + label] += 1;
    for (std::int64_t k = 0; k < desc.classes; ++k) of_sample[desc.classes + k] += softmax.probability(k);
  }
}

void segmentation_gradient(const SegmentationLossDesc& desc, const float* logits, const std::uint8_t* labels,
                           double cross_entropy_scale, const double* dice, float* dlogits) {
  for (std::int64_t v = 0; v < desc.samples * desc.voxels; ++v) {
    float* const gradient = dlogits + v * desc.classes;
    const int label = labels[v];
    if (!counts(desc, label)) {
      std::fill_n(gradient, desc.classes, 0.0F);
      continue;
    }
    // logits may lie where the gradient goes.
    std::array<double, 256> p;
    const Softmax softmax(logits + v * desc.classes, desc.classes);
    for (std::int64_t k = 0; k < desc.classes; ++k) p[static_cast<std::size_t>(k)] = softmax.probability(k);
    const auto by_probability = [&](std::int64_t k) {
      if (desc.dice == 0) return 0.0;
      const double* const of_sample = dice + v / desc.voxels * 2 * desc.classes;
      return (k == label ? of_sample[k] : 0) + of_sample[desc.classes + k];
    };
    double mean = 0;
    for (std::int64_t k = 0; k < desc.classes; ++k) mean += p[static_cast<std::size_t>(k)] * by_probability(k);
    for (std::int64_t k = 0; k < desc.classes; ++k) {
      const double pk = p[static_cast<std::size_t>(k)];
      const double entropy = cross_entropy_scale * weight_of(desc, label) * (pk - (k == label ? 1 : 0));
      gradient[k] = static_cast<float>(entropy + pk * (by_probability(k) - mean));
    }
  }
}

}  // namespace halograd::reference
