#include "halograd/nn/network.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>

namespace halograd {

Network::Network(const GlobalShape& input) : input_(input) {
  if (input.channels < 1 || input.extent.d < 1 || input.extent.h < 1 || input.extent.w < 1) {
    throw UsageError("a network's input has at least one channel and one voxel");
  }
}

NodeId Network::add(std::string name, Layer layer, std::optional<NodeId> input) {
  const NodeId last{static_cast<std::int64_t>(nodes_.size()) - 1};
  const NodeId from = input.value_or(last);
  if (std::ranges::any_of(nodes_, [&](const Node& node) { return node.name == name; })) {
    throw UsageError("layer {}: the name is taken", name);
  }
  if (from != last) throw UsageError("layer {}: its input already feeds another layer", name);
  const GlobalShape in = nodes_.empty() ? input_ : nodes_.back().out;
  if (!nodes_.empty() && std::holds_alternative<MeanSquaredError>(nodes_.back().layer)) {
    throw UsageError("layer {}: nothing comes after the loss", name);
  }
  const GlobalShape out = output_shape(layer, name, in);
  nodes_.push_back({std::move(name), std::move(layer), from, in, out});
  return {last.index + 1};
}

GlobalShape Network::output() const {
  return nodes_.empty() ? input_ : nodes_.back().out;
}

std::vector<ParameterSpec> Network::parameters() const {
  std::vector<ParameterSpec> all;
  for (const Node& node : nodes_) {
    for (ParameterSpec& spec : layer_parameters(node.layer, node.name, node.in)) all.push_back(std::move(spec));
  }
  return all;
}

std::int64_t Network::trainable_parameters() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameters()) count += spec.trainable ? spec.elements() : 0;
  return count;
}

Extent Network::total_stride() const {
  Extent total = Extent::cube(1);
  for (const Node& node : nodes_) {
    for (int i = 0; i < 3; ++i) total[i] *= layer_window(node.layer).stride[i];
  }
  return total;
}

PaperFigures paper_figures(const Network& network) {
  PaperFigures figures;
  std::int64_t values = 2 * network.input().elements();
  for (const Node& node : network.nodes()) {
    const bool convolution = std::holds_alternative<Convolution>(node.layer);
    if (convolution) figures.convolution_forward_flops += forward_flops(node.layer, node.in, node.out);
    if (convolution || std::holds_alternative<LeakyRelu>(node.layer) || std::holds_alternative<Pool>(node.layer) ||
        std::holds_alternative<FullyConnected>(node.layer)) {
      values += node.out.elements();
    }
  }
  figures.convolution_flops = 3 * figures.convolution_forward_flops;
  figures.memory_bytes = 8.0 * static_cast<double>(values);
  return figures;
}

}  // namespace halograd
