#pragma once

#include "halograd/data/augmentation.hpp"
#include "halograd/data/file_layout.hpp"
#include "halograd/kernels/convert.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace halograd {

/// What becomes of each number on its way into the network.
struct ValueTransform {
  InputTransform kind = InputTransform::none;
  std::array<double, 2> window{-200, 300};  ///< of InputTransform::window: what becomes −1 and 1
};

/// The labels that a loss takes.
struct LabelRange {
  std::int64_t classes = 256;  ///< labels are below it
  int ignore_label = -1;       ///< or this one; −1: none
};

/// How hyperslabs become a network's input.
struct InputConversion {
  Backend backend = Backend::cpu;
  ValueTransform transform;
  LabelRange labels;
  std::int64_t channels = 0;
  Box own;   ///< the voxels a hyperslab holds
  Box tile;  ///< the voxels the input holds of a sample: `own` and its margins, which are not written
};

/// One sample to be converted.
struct SampleSource {
  FileLayout layout;
  ValueScale scale;
  std::string file;
  Augmentation augmentation{};  ///< with flips the hyperslab is that of the mirrored box
};

/// Converts one sample's hyperslab into the input, [tile, C] f32, and its labels, where there are any and a place for
/// them, into [own] u8. Throws DataError naming the file where a voxel is, or becomes, no finite number, and where a
/// label is none that the loss takes.
void convert_sample(const InputConversion& conversion, const SampleSource& sample, const std::byte* hyperslab,
                    float* to, std::uint8_t* labels = nullptr);

}  // namespace halograd
