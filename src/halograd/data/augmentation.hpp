#pragma once

#include "halograd/kernels/convert.hpp"

#include <cstdint>

namespace halograd {

/// How training samples are varied from epoch to epoch.
struct AugmentOptions {
  Flips flip{};      ///< dimensions that every other sample is flipped along
  double scale = 0;  ///< values are multiplied by 1 ± up to this, after their transform
  double shift = 0;  ///< and ± up to this is added to them
  std::uint64_t seed = 1;
};

/// What is done to one sample in one epoch.
struct Augmentation {
  Flips flip{};
  double gain = 1;
  double shift = 0;
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// The augmentation of a sample in an epoch: a pure function, the same on every rank and grid. Each of its numbers is
/// drawn by itself: none changes when another is switched on.
Augmentation draw_augmentation(const AugmentOptions& options, std::int64_t epoch, std::int64_t sample);

/// The voxels that come to lie in `box` when a volume is flipped.
Box mirrored(const Box& box, const Extent& volume, const Flips& flip);

}  // namespace halograd
