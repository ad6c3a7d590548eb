#pragma once

#include "halograd/plan/fusion.hpp"
#include "halograd/tensor/partition.hpp"

#include <optional>
#include <vector>

namespace halograd {

/// Where a stage's input and output lie.
struct StagePlacement {
  std::optional<Partition> reshard_from;  ///< set where the input is first moved from this partition to `in`
  Partition in;
  Partition out;
};

/// Derives every stage's partition from the input's. Where a shard would be thinner than the halo of a convolution (or
/// of the pool behind it), and before flattening, the tensor is moved to a coarser partition, at the end to a whole
/// one. A pure function, the same on every rank.
std::vector<StagePlacement> place(const std::vector<Stage>& stages, const Partition& input);

}  // namespace halograd
