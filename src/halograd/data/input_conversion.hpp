#pragma once

#include "halograd/data/sample.hpp"
#include "halograd/kernels/convert.hpp"

#include <cstddef>
#include <string>

namespace halograd {

/// How hyperslabs become a network's input.
struct InputConversion {
  Backend backend = Backend::cpu;
  InputTransform transform = InputTransform::none;
  std::int64_t channels = 0;
  Box own;   ///< the voxels a hyperslab holds
  Box tile;  ///< the voxels the input holds of a sample: `own` and its margins, which are not written
};

/// Converts one sample's hyperslab into the input, [tile, C] f32. Throws DataError naming `file` where a voxel is, or
/// becomes, no finite number.
void convert_sample(const InputConversion& conversion, const SampleLayout& layout, const std::string& file,
                    const std::byte* voxels, float* to);

}  // namespace halograd
