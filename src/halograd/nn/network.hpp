#pragma once

#include "halograd/nn/layer_rules.hpp"

#include <string>
#include <vector>

namespace halograd {

/// A layer's place in its network; what building returns and joins take.
struct NodeId {
  std::int64_t index = -1;
  friend bool operator==(NodeId, NodeId) = default;
};

struct Node {
  std::string name;
  Layer layer;
  std::vector<NodeId> inputs;  ///< index −1: the network's input
  GlobalShape in;              ///< of the first
  GlobalShape out;
};

/// A static graph of layers with global shapes: what is computed, with no thought of ranks, devices or memory. Layers
/// are added in the order they run; each takes the one before it unless told otherwise. Any number of layers may take
/// the same one.
///
///     Network net({.channels = 4, .extent = Extent::cube(32)});
///     net.add("conv1", Convolution{.channels = 16});
///     net.add("bn1", BatchNorm{});
///     net.add("relu1", LeakyRelu{});
///     net.add("pool1", Pool{});
///     net.add("flatten", Flatten{});
///     net.add("fc1", FullyConnected{.features = 4});
///     net.add("loss", MeanSquaredError{});
///
/// A join: `net.add("join", Concatenation{}, {up, skip})`, with what add() gave back for those layers.
class Network {
public:
  explicit Network(const GlobalShape& input);

  /// Appends a layer that takes `inputs`, or the layer before it (at first the network's input). Throws UsageError
  /// where its name is taken or its inputs do not fit.
  NodeId add(std::string name, Layer layer, std::vector<NodeId> inputs = {});

  [[nodiscard]] const GlobalShape& input() const { return input_; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id.index)]; }
  /// Shape of the prediction: what the loss takes, or the last layer gives where there is none.
  [[nodiscard]] GlobalShape output() const;

  /// All arrays of all layers, in layer order.
  [[nodiscard]] std::vector<ParameterSpec> parameters() const;
  /// Elements of the trainable ones.
  [[nodiscard]] std::int64_t trainable_parameters() const;
  /// How much smaller than the input the smallest volume is, per dimension: where cuts fall on multiples of it, every
  /// layer is cut evenly.
  [[nodiscard]] Extent total_stride() const;

private:
  GlobalShape input_;
  std::vector<Node> nodes_;
};

/// The figures of the paper's Table I for one sample of `network`.
struct PaperFigures {
  double convolution_forward_flops = 0;
  double convolution_flops = 0;        ///< forward and the two backward passes of every convolution and deconvolution
  double memory_bytes = 0;             ///< 8 bytes × (2·input + every output but normalisations' and joins')
  double memory_bytes_with_norms = 0;  ///< and every normalisation's
};
PaperFigures paper_figures(const Network& network);

}  // namespace halograd
