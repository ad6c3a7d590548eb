#pragma once

#include "halograd/kernels/segmentation_loss.hpp"
#include "kernels/support.hpp"

#include <algorithm>

namespace halograd::test {

/// Losses of any number of classes, in any mixture.
inline SegmentationLossDesc random_loss(Dice& dice, std::uint64_t round) {
  SegmentationLossDesc desc{.samples = dice.between(1, 3), .voxels = dice.between(1, 300)};
  desc.classes = round % 4 == 3 ? dice.one_of<std::int64_t>({9, 12, 14, 16, 24, 40, 64, 65, 128, 129, 200, 255, 256})
                                : dice.between(1, 8);
  if (dice.between(0, 1) == 0) desc.voxels = desc.voxels / 8 * 8 + 8;  // samples that begin at whole accesses
  if (desc.classes > 60) desc.voxels = 1 + desc.voxels % 40;
  if (dice.between(0, 1) == 0) {
    for (std::int64_t k = 0; k < desc.classes; ++k) desc.class_weights.push_back(0.5 * static_cast<double>(k + 1));
  }
  desc.ignore_label = dice.one_of<int>({-1, -1, 0, static_cast<int>(desc.classes) - 1, 255});
  desc.cross_entropy = round % 5 == 1 ? 0 : 0.7;
  desc.dice = round % 5 == 2 ? 0 : 1.3;
  desc.smooth = dice.one_of<double>({1e-5, 1, 0});
  return desc;
}

/// A label for every voxel of the loss. Some are no class; one counts.
inline std::vector<std::uint8_t> random_labels(Dice& dice, const SegmentationLossDesc& desc) {
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < desc.samples * desc.voxels; ++i) {
    labels.push_back(static_cast<std::uint8_t>(dice.between(0, std::min<std::int64_t>(255, desc.classes))));
  }
  labels[0] = static_cast<std::uint8_t>(desc.ignore_label == 0 && desc.classes > 1 ? 1 : 0);
  return labels;
}

/// Losses that what is not finite must be seen in: of either share, also where no label present has a weight.
inline std::vector<SegmentationLossDesc> losses_by_share(std::int64_t voxels, std::int64_t classes) {
  std::vector<SegmentationLossDesc> losses;
  for (const double dice : {0, 1}) {
    for (const double weight : {0, 1}) {
      losses.push_back({.samples = 1,
                        .voxels = voxels,
                        .classes = classes,
                        .class_weights = std::vector<double>(static_cast<std::size_t>(classes), weight),
                        .cross_entropy = 1 - dice,
                        .dice = dice});
    }
  }
  return losses;
}

}  // namespace halograd::test
