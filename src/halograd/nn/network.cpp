#include "halograd/nn/network.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <numeric>

namespace halograd {

Network::Network(const GlobalShape& input) : input_(input) {
  if (input.channels < 1 || input.extent.d < 1 || input.extent.h < 1 || input.extent.w < 1) {
    throw UsageError("a network's input has at least one channel and one voxel");
  }
}

NodeId Network::add(std::string name, Layer layer, std::vector<NodeId> inputs) {
  const auto count = static_cast<std::int64_t>(nodes_.size());
  if (inputs.empty()) inputs = {NodeId{count - 1}};
  if (std::ranges::any_of(nodes_, [&](const Node& node) { return node.name == name; })) {
    throw UsageError("layer {}: the name is taken", name);
  }
  std::vector<GlobalShape> shapes;
  for (const NodeId input : inputs) {
    if (input.index < -1 || input.index >= count) throw UsageError("layer {}: takes a layer that does not exist", name);
    if (input.index >= 0 && is_loss(node(input).layer))
      throw UsageError("layer {}: nothing comes after the loss", name);
    shapes.push_back(input.index < 0 ? input_ : node(input).out);
  }
  if (!nodes_.empty() && is_loss(nodes_.back().layer)) throw UsageError("layer {}: nothing comes after the loss", name);
  const GlobalShape out = output_shape(layer, name, shapes);
  if (std::holds_alternative<SegmentationLoss>(layer) && out.extent != input_.extent) {
    throw UsageError("layer {}: labels are as large as the network's input, {}x{}x{}, but the prediction is {}x{}x{}",
                     name, input_.extent.d, input_.extent.h, input_.extent.w, out.extent.d, out.extent.h, out.extent.w);
  }
  nodes_.push_back({std::move(name), std::move(layer), std::move(inputs), shapes.front(), out});
  return {count};
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
  std::vector<Extent> strides;  // of each node's output against the input
  for (const Node& node : nodes_) {
    const NodeId input = node.inputs.front();
    Extent stride = input.index < 0 ? Extent::cube(1) : strides[static_cast<std::size_t>(input.index)];
    const Window window = layer_window(node.layer);
    for (int i = 0; i < 3; ++i) {
      stride[i] =
          window.transposed ? std::max<std::int64_t>(1, stride[i] / window.stride[i]) : stride[i] * window.stride[i];
      total[i] = std::lcm(total[i], stride[i]);
    }
    strides.push_back(stride);
  }
  return total;
}

PaperFigures paper_figures(const Network& network) {
  PaperFigures figures;
  std::int64_t values = 2 * network.input().elements();
  std::int64_t norms = 0;
  const auto is = [](const Layer& layer, auto... kinds) {
    return (std::holds_alternative<decltype(kinds)>(layer) || ...);
  };
  for (const Node& node : network.nodes()) {
    const bool convolution = is(node.layer, Convolution{}, Deconvolution{});
    if (convolution) figures.convolution_forward_flops += forward_flops(node.layer, node.in, node.out);
    if (convolution || is(node.layer, LeakyRelu{}, Pool{}, FullyConnected{}, Upsample{}, Sum{})) {
      values += node.out.elements();
    }
    if (is(node.layer, BatchNorm{}, GroupNorm{})) norms += node.out.elements();
  }
  figures.convolution_flops = 3 * figures.convolution_forward_flops;
  figures.memory_bytes = 8.0 * static_cast<double>(values);
  figures.memory_bytes_with_norms = 8.0 * static_cast<double>(values + norms);
  return figures;
}

}  // namespace halograd
