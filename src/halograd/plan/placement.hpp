#pragma once

#include "halograd/plan/fusion.hpp"
#include "halograd/tensor/partition.hpp"

#include <vector>

namespace halograd {

/// A stage and how its tensors are partitioned. All its inputs are partitioned alike.
struct PlacedStage {
  Stage stage;
  Partition in;
  Partition out;
  bool joins = false;  ///< its output is written straight into the buffer of the last stage that takes it
};

struct Placement {
  Partition input;  ///< of the network's input
  bool input_joins = false;
  std::vector<PlacedStage> stages;

  [[nodiscard]] const Partition& partition_of(StageId stage) const {
    return stage == network_input ? input : stages[static_cast<std::size_t>(stage)].out;
  }
};

/// Whether a stage reads its input from a buffer of its own making: dense, with margins, or of several tensors side by
/// side. The others read a tensor wherever it lies.
bool takes_own_buffer(StageKind kind);

/// Derives every stage's partition from the input's, and adds copies where a tensor has to be in two places.
///
/// Moved to another partition (reshard): where a shard would be thinner than the halo of a convolution or of the pool
/// behind it; before flattening; at a join of tensors that are cut differently, where the finest stays, of equals the
/// first; before a loss on labels, which lie as the input does.
///
/// Within a rank: a tensor lies in the buffer of the last stage that takes it. Earlier ones that need a buffer of their
/// own get a copy, and so does every such stage behind a convolution, which writes dense buffers without margins only.
///
/// A pure function, the same on every rank.
Placement place(const Network& network, const std::vector<Stage>& stages, const Partition& input);

/// The voxels of its input that a stage reads for the outputs of `part`.
Box needed_by(const PlacedStage& placed, const Index& part);

}  // namespace halograd
