#include "halograd/plan/fusion.hpp"

namespace halograd {
namespace {

/// Where a layer stands in a chain's fixed order; −1 for one that is no part of chains.
int chain_rank(const Layer& layer) {
  if (std::holds_alternative<BatchNorm>(layer)) return 0;
  if (std::holds_alternative<LeakyRelu>(layer)) return 1;
  if (std::holds_alternative<Pool>(layer)) return 2;
  if (std::holds_alternative<Dropout>(layer)) return 3;
  return -1;
}

StageKind stage_kind(const Layer& layer) {
  if (std::holds_alternative<Convolution>(layer)) return StageKind::convolution;
  if (std::holds_alternative<Flatten>(layer)) return StageKind::flatten;
  if (std::holds_alternative<FullyConnected>(layer)) return StageKind::dense;
  if (std::holds_alternative<MeanSquaredError>(layer)) return StageKind::loss;
  return StageKind::chain;
}

void join_chain(Stage& chain, int rank, NodeId id, const Node& node) {
  std::optional<NodeId>* const places[] = {&chain.batch_norm, &chain.activation, &chain.pool, &chain.dropout};
  *places[rank] = id;
  chain.out = node.out;
  if (rank == 2) chain.window = layer_window(node.layer);
  chain.name += chain.name.empty() ? node.name : "+" + node.name;
}

}  // namespace

std::vector<Stage> fuse(const Network& network) {
  std::vector<Stage> stages;
  int last_rank = 4;  // nothing can join
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    const Node& node = network.nodes()[i];
    const NodeId id{static_cast<std::int64_t>(i)};
    const int rank = chain_rank(node.layer);
    if (rank >= 0) {
      if (rank <= last_rank) {
        stages.push_back({.kind = StageKind::chain, .name = {}, .in = node.in, .out = node.in, .window = {}});
      }
      join_chain(stages.back(), rank, id, node);
      last_rank = rank;
      continue;
    }
    const StageKind kind = stage_kind(node.layer);
    if (kind == StageKind::convolution && !stages.empty() && stages.back().kind == StageKind::convolution) {
      stages.push_back(
          {.kind = StageKind::chain, .name = "copy to " + node.name, .in = node.in, .out = node.in, .window = {}});
    }
    stages.push_back({.kind = kind,
                      .name = node.name,
                      .in = node.in,
                      .out = node.out,
                      .window = layer_window(node.layer),
                      .node = id});
    last_rank = 4;
  }
  return stages;
}

}  // namespace halograd
