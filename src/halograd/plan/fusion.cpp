#include "halograd/plan/fusion.hpp"

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

template <typename... Kinds>
bool is(const Layer& layer) {
  return (std::holds_alternative<Kinds>(layer) || ...);
}

/// Where a layer stands in a chain's fixed order; −1 for one that is no part of chains.
int chain_rank(const Layer& layer) {
  if (is<BatchNorm, GroupNorm>(layer)) return 0;
  if (is<LeakyRelu>(layer)) return 1;
  if (is<Pool>(layer)) return 2;
  if (is<Dropout>(layer)) return 3;
  return -1;
}

StageKind stage_kind(const Layer& layer) {
  if (is<Convolution, Deconvolution>(layer)) return StageKind::convolution;
  if (is<Upsample>(layer)) return StageKind::upsample;
  if (is<Concatenation>(layer)) return StageKind::concatenation;
  if (is<Sum>(layer)) return StageKind::sum;
  if (is<Flatten>(layer)) return StageKind::flatten;
  if (is<FullyConnected>(layer)) return StageKind::dense;
  if (is_loss(layer)) return StageKind::loss;
  return StageKind::chain;
}

/// How far a chain has come: the rank of its last layer; 4 where nothing can join.
int last_rank(const Stage& stage) {
  if (stage.kind != StageKind::chain) return 4;
  const std::optional<NodeId> places[] = {stage.norm, stage.activation, stage.pool, stage.dropout};
  int last = -1;
  for (int rank = 0; rank < 4; ++rank) {
    if (places[rank]) last = rank;
  }
  return last;
}

void join_chain(Stage& chain, int rank, NodeId id, const Node& node) {
  std::optional<NodeId>* const places[] = {&chain.norm, &chain.activation, &chain.pool, &chain.dropout};
  *places[rank] = id;
  chain.out = node.out;
  if (rank == 2) chain.window = layer_window(node.layer);
  chain.name += chain.name.empty() ? node.name : "+" + node.name;
}

/// How many layers take each layer's output (−1, the network's input, first).
std::vector<int> uses(const Network& network) {
  std::vector<int> count(network.nodes().size() + 1);
  for (const Node& node : network.nodes()) {
    for (const NodeId input : node.inputs) ++count[static_cast<std::size_t>(input.index + 1)];
  }
  return count;
}

}  // namespace

std::vector<NodeId> Stage::layers() const {
  std::vector<NodeId> all;
  for (const auto& id : {node, norm, activation, pool, dropout}) {
    if (id) all.push_back(*id);
  }
  return all;
}

std::vector<Stage> fuse(const Network& network) {
  std::vector<Stage> stages;
  std::vector<StageId> stage_of;  // by layer: the stage whose output is the layer's
  const std::vector<int> taken = uses(network);
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    const Node& node = network.nodes()[i];
    if (taken[i + 1] == 0 && i + 1 < network.nodes().size()) {
      throw UsageError("layer {}: nothing takes its output", node.name);
    }
    const NodeId id{static_cast<std::int64_t>(i)};
    std::vector<StageId> inputs;
    for (const NodeId input : node.inputs) {
      inputs.push_back(input.index < 0 ? network_input : stage_of[static_cast<std::size_t>(input.index)]);
    }
    const int rank = chain_rank(node.layer);
    if (rank >= 0) {
      const StageId before = inputs.front();
      const bool alone = taken[static_cast<std::size_t>(node.inputs.front().index + 1)] == 1;
      const bool joins = alone && before >= 0 && last_rank(stages[static_cast<std::size_t>(before)]) < rank;
      if (!joins) {
        stages.push_back({.kind = StageKind::chain,
                          .name = {},
                          .inputs = std::move(inputs),
                          .in = node.in,
                          .out = node.in,
                          .window = {}});
      }
      stage_of.push_back(joins ? before : static_cast<StageId>(stages.size()) - 1);
      join_chain(stages[static_cast<std::size_t>(stage_of.back())], rank, id, node);
      continue;
    }
    stages.push_back({.kind = stage_kind(node.layer),
                      .name = node.name,
                      .inputs = std::move(inputs),
                      .in = node.in,
                      .out = node.out,
                      .window = layer_window(node.layer),
                      .node = id});
    stage_of.push_back(static_cast<StageId>(stages.size()) - 1);
  }
  return stages;
}

Readers::Readers(const std::vector<Stage>& stages) : readers_(stages.size() + 1) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (std::size_t slot = 0; slot < stages[i].inputs.size(); ++slot) {
      readers_[static_cast<std::size_t>(stages[i].inputs[slot] + 1)].push_back({static_cast<StageId>(i), slot});
    }
  }
}

}  // namespace halograd
