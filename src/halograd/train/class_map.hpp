#pragma once

#include "halograd/data/group_reader.hpp"
#include "halograd/plan/plan.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace halograd {

/// The class that one voxel's logits speak for: that of the largest, the first of equals.
inline std::uint8_t predicted_class(const float* logits, std::int64_t classes) {
  return static_cast<std::uint8_t>(std::max_element(logits, logits + classes) - logits);
}

/// The class of each voxel. `logits`: [voxels, classes]. Throws NumericalError where one is not finite.
std::vector<std::uint8_t> predicted_classes(std::span<const float> logits, std::int64_t classes);

/// Collective over the group. Puts together on rank 0, as [D,H,W], what each holds of one sample; the others get
/// nothing. `part`: of output.own.
std::vector<std::uint8_t> gather_classes(GroupReader& group, const OutputUnit& output,
                                         std::span<const std::uint8_t> part);

}  // namespace halograd
