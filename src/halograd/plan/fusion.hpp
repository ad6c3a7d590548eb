#pragma once

#include "halograd/nn/network.hpp"

#include <optional>
#include <string>
#include <vector>

namespace halograd {

enum class StageKind { convolution, chain, upsample, concatenation, sum, copy, flatten, dense, loss };

/// Number of a stage, by which others take its output; −1: the network's input.
using StageId = int;
constexpr StageId network_input = -1;

/// Layers that run as one. A chain is normalise → activate → pool → dropout, in this order, each at most once.
/// Deconvolutions are convolutions with a transposed window. Copies are not the network's: placement adds them.
struct Stage {
  StageKind kind{};
  std::string name;
  std::vector<StageId> inputs;
  GlobalShape in;  ///< of the first input
  GlobalShape out;
  Window window;               ///< of the convolution, the upsampling or the pool
  std::optional<NodeId> node;  ///< of all kinds but chains and copies
  std::optional<NodeId> norm;
  std::optional<NodeId> activation;
  std::optional<NodeId> pool;
  std::optional<NodeId> dropout;

  /// The layers in it.
  [[nodiscard]] std::vector<NodeId> layers() const;
};

/// The network as stages, each behind those whose outputs it takes. A layer joins the chain before it only where
/// nothing else takes that chain's output. Throws UsageError where nothing takes a layer's output, the last one's
/// excepted.
std::vector<Stage> fuse(const Network& network);

/// A stage that takes another's output, and as which of its inputs.
struct Reader {
  StageId stage = 0;
  std::size_t slot = 0;
};

/// Who takes each stage's output, in order; `of` counts from the network's input (−1).
class Readers {
public:
  explicit Readers(const std::vector<Stage>& stages);
  [[nodiscard]] const std::vector<Reader>& of(StageId stage) const {
    return readers_[static_cast<std::size_t>(stage + 1)];
  }

private:
  std::vector<std::vector<Reader>> readers_;
};

}  // namespace halograd
