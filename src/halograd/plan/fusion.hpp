#pragma once

#include "halograd/nn/network.hpp"

#include <optional>
#include <string>
#include <vector>

namespace halograd {

enum class StageKind { convolution, chain, flatten, dense, loss };

/// Layers that run as one. A chain is normalise → activate → pool → dropout, in this order, each at most once.
struct Stage {
  StageKind kind{};
  std::string name;
  GlobalShape in;
  GlobalShape out;
  Window window;               ///< of the convolution or the pool
  std::optional<NodeId> node;  ///< of all kinds but chains
  std::optional<NodeId> batch_norm;
  std::optional<NodeId> activation;
  std::optional<NodeId> pool;
  std::optional<NodeId> dropout;
};

/// The network as stages. Between two convolutions, and before one at the network's start that does not read the input
/// itself, there always is a chain (an empty one copies), since something has to write the margined buffer.
std::vector<Stage> fuse(const Network& network);

}  // namespace halograd
