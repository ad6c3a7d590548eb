#pragma once

#include "halograd/data/augmentation.hpp"
#include "halograd/data/file_layout.hpp"
#include "halograd/kernels/input_converter.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
struct InputConversionOptions {
  Device device;            ///< that the input is on
  DType type = DType::f32;  ///< of the input: f32 or bf16
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

/// Converts hyperslabs, on the host, into a network's input, on its device.
class InputConversion {
public:
  explicit InputConversion(const InputConversionOptions& options);

  /// One sample's hyperslab into [tile, C] and its labels, where there are any and a place for them, into [own] u8;
  /// both are there when this returns. Throws DataError naming the file where a voxel is, or becomes, no finite number,
  /// and where a label is none that the loss takes.
  void convert(const SampleSource& sample, const std::byte* hyperslab, std::byte* to, std::uint8_t* labels = nullptr);

private:
  void convert_labels_of(const SampleSource& sample, const std::byte* hyperslab, std::uint8_t* to);

  InputConversionOptions options_;
  Queue queue_;
  InputConverter converter_;
  std::vector<std::uint8_t> checked_labels_;  ///< on their way to a device that is not the host
};

}  // namespace halograd
