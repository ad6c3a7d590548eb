#include "halograd/models/unet3d.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace halograd {
namespace {

std::int64_t count(const Network& net, const std::string& prefix) {
  return std::ranges::count_if(net.nodes(), [&](const Node& node) {
    return node.name.starts_with(prefix) && std::isdigit(static_cast<unsigned char>(node.name[prefix.size()])) != 0;
  });
}

const Node& layer(const Network& net, const std::string& name) {
  return *std::ranges::find(net.nodes(), name, &Node::name);
}

TEST(Unet3d, HasThePublishedFigures) {
  const Network net = unet3d({.width = 256});
  EXPECT_EQ(net.trainable_parameters(), 19'070'560);
  EXPECT_NEAR(paper_figures(net).convolution_forward_flops / 1e9, 31'264, 0.5);
  EXPECT_EQ(count(net, "conv"), 15);
  EXPECT_EQ(count(net, "bn"), 14);
  EXPECT_EQ(count(net, "deconv"), 3);
  EXPECT_EQ(net.total_stride(), Extent::cube(8));
  EXPECT_EQ(net.output(), (GlobalShape{3, Extent::cube(256)}));
  EXPECT_EQ(layer(net, "concat1").out, (GlobalShape{768, Extent::cube(64)}));
  EXPECT_EQ(layer(net, "concat3").out, (GlobalShape{192, Extent::cube(256)}));
  EXPECT_EQ(layer(net, "conv8").out, (GlobalShape{512, Extent::cube(32)}));
}

TEST(Unet3d, TakesChannelsClassesNormsAndEveryMultipleOfEight) {
  // conv1 has 27·32 weights for each further channel, conv15 64 for each further class.
  EXPECT_EQ(unet3d({.width = 40, .channels = 4, .classes = 5}).trainable_parameters(),
            19'070'560 + 3 * 27 * 32 + 2 * 64);
  for (const UnetNorm norm : {UnetNorm::instance, UnetNorm::group}) {
    EXPECT_EQ(unet3d({.width = 32, .norm = norm}).trainable_parameters(), 19'070'560);
  }
  const std::int64_t norms = 2 * (32 + 64 + 64 + 128 + 128 + 256 + 256 + 512 + 256 + 256 + 128 + 128 + 64 + 64);
  EXPECT_EQ(unet3d({.width = 32, .norm = UnetNorm::none}).trainable_parameters(), 19'070'560 - norms);
  EXPECT_THROW(unet3d({.width = 36}), UsageError);
  EXPECT_THROW(unet3d({.width = 32, .classes = 1}), UsageError);
  EXPECT_THROW(unet3d({.width = 32, .loss = {.class_weights = {1, 2}}}), UsageError);
}

TEST(Network, JoinsAndForksRefuseWhatDoesNotFit) {
  Network net({2, Extent::cube(8)});
  const NodeId a = net.add("conv1", Convolution{3});
  const NodeId b = net.add("conv2", Convolution{4}, {a});
  const NodeId small = net.add("pool", Pool{}, {a});
  EXPECT_THROW(net.add("sum", Sum{}, {a, b}), UsageError);                 // other channels
  EXPECT_THROW(net.add("join", Concatenation{}, {a, small}), UsageError);  // other extents
  EXPECT_THROW(net.add("relu", LeakyRelu{}, {a, b}), UsageError);          // two inputs
  EXPECT_THROW(net.add("late", LeakyRelu{}, {NodeId{7}}), UsageError);
  EXPECT_THROW(net.add("norm", GroupNorm{.groups = 3}, {b}), UsageError);
  EXPECT_EQ(net.node(net.add("join", Concatenation{}, {b, a, b})).out.channels, 11);
  EXPECT_THROW(net.add("loss", SegmentationLoss{}, {small}), UsageError);  // labels are as large as the input
  EXPECT_EQ(net.node(net.add("up", Upsample{.factor = {1, 2, 3}}, {small})).out.extent, (Extent{4, 8, 12}));
}

TEST(Network, DeconvolutionsGrowVolumesAndCanBeSplit) {
  Network net({2, Extent::cube(5)});
  const auto window = [](std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t more) {
    return Window{Extent::cube(k), Extent::cube(s), Extent::cube(p), Extent::cube(more), true};
  };
  EXPECT_EQ(net.node(net.add("a", Deconvolution{4}, {NodeId{}})).out.extent, Extent::cube(10));
  EXPECT_EQ(net.node(net.add("b", Deconvolution{4, window(3, 2, 1, 1)}, {NodeId{}})).out.extent, Extent::cube(10));
  EXPECT_EQ(net.node(net.add("c", Deconvolution{4, window(4, 3, 1, 0)}, {NodeId{}})).out.extent, Extent::cube(14));
  EXPECT_THROW(net.add("d", Deconvolution{4, window(2, 3, 0, 0)}, {NodeId{}}), UsageError);
  EXPECT_THROW(net.add("e", Deconvolution{4, window(3, 2, 0, 1)}, {NodeId{}}), UsageError);
  const std::vector<ParameterSpec> weights = layer_parameters(net.nodes()[1].layer, "b", net.input());
  EXPECT_EQ(weights.front().dims, (std::vector<std::int64_t>{2, 4, 3, 3, 3}));
  EXPECT_EQ(weights.front().fan_in, 2 * 27 / 8.0);
}

TEST(Parameters, HeNormalHasTheVarianceItNames) {
  const ParameterSpec spec{.layer = "conv",
                           .name = "weight",
                           .dims = {32, 16, 3, 3, 3},
                           .initializer = Initializer::he_normal,
                           .fan_in = 16 * 27};
  std::vector<float> values(static_cast<std::size_t>(spec.elements()));
  initialize(spec, 3, 1, values.data());
  double sum = 0;
  double square = 0;
  double fourth = 0;
  for (const float value : values) {
    sum += value;
    square += std::pow(value, 2);
    fourth += std::pow(value, 4);
  }
  const auto n = static_cast<double>(values.size());
  const double variance = square / n;
  EXPECT_NEAR(variance, 2.0 / (16 * 27), 0.05 * 2.0 / (16 * 27));
  EXPECT_NEAR(sum / n, 0, 4 * std::sqrt(variance / n));
  EXPECT_NEAR(fourth / n / (variance * variance), 3, 0.15);  // as of a normal distribution
}

}  // namespace
}  // namespace halograd
