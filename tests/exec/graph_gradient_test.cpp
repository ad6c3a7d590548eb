// The gradient of a whole graph against finite differences along random directions: forks, joins, group statistics, and
// the losses on labels meet only here.
#include "exec/support.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

Network graph(const SegmentationLoss& loss) {
  Network net({2, {6, 8, 4}});
  net.add("conv1", Convolution{6});
  net.add("norm1", GroupNorm{.groups = 3});
  const NodeId skip = net.add("smooth1", LeakyRelu{1});  // a kink would spoil the differences
  net.add("pool", Pool{PoolKind::average, Window{Extent::cube(2), Extent::cube(2), {}}});
  net.add("conv2", Convolution{6});
  net.add("norm2", GroupNorm{});
  const NodeId bottom = net.add("smooth2", LeakyRelu{1});
  const NodeId grown = net.add("up1", Deconvolution{6});
  const NodeId smooth = net.add("up2", Upsample{UpsampleKind::trilinear}, {bottom});
  const NodeId sum = net.add("sum", Sum{}, {grown, smooth, skip});
  net.add("norm3", BatchNorm{}, {sum});
  const NodeId normal = net.add("smooth3", LeakyRelu{1});
  net.add("join", Concatenation{}, {normal, skip, NodeId{-1}});
  net.add("conv3", Convolution{3});
  net.add("loss", loss);
  return net;
}

/// Dense blocks: what a join holds is read again by layers that need its values backward, so that no gradient may be
/// written over it.
Network dense_block(const SegmentationLoss& loss) {
  Network net({1, {4, 6, 4}});
  net.add("conv1", Convolution{3});
  const NodeId first = net.add("norm1", GroupNorm{});
  net.add("norm2", BatchNorm{}, {first});
  const NodeId second = net.add("conv2", Convolution{2});
  const NodeId join = net.add("join1", Concatenation{}, {first, second});
  net.add("norm3", GroupNorm{}, {join});
  const NodeId third = net.add("conv3", Convolution{2});
  net.add("join2", Concatenation{}, {join, third, third});
  net.add("norm4", BatchNorm{});
  net.add("conv4", Convolution{3});
  net.add("loss", loss);
  return net;
}

using Build = Network (*)(const SegmentationLoss&);

class GraphGradient : public testing::TestWithParam<std::tuple<Build, SegmentationLoss>> {};

TEST_P(GraphGradient, IsTheSlopeOfTheLoss) {
  const auto& [build, loss] = GetParam();
  Executor executor(build(loss), Communicator::self(), {.device = Backend::reference, .seed = 2});
  const test::RandomBatch batch(executor.prepare(Mode::train, 3), 9);
  ParameterStore& parameters = executor.parameters();
  const auto count = static_cast<std::size_t>(parameters.trainable_elements());
  executor.train(batch.view(), 0, 0);
  const std::vector<float> gradient(parameters.gradients(), parameters.gradients() + count);
  const std::vector<float> weights(parameters.values(), parameters.values() + count);
  // One direction an array, so that a small one's fault is not lost among the others.
  for (const ParameterPlan& entry : parameters.parameters()) {
    if (!entry.spec.trainable) continue;
    const auto loss_at = [&](float step) {
      std::copy(weights.begin(), weights.end(), parameters.values());
      for (std::int64_t i = 0; i < entry.spec.elements(); ++i) {
        parameters.values()[entry.offset + i] += step * test::random_value(4, 0, i);
      }
      parameters.changed();
      return executor.train(batch.view(), 0, 0).loss;
    };
    constexpr float h = 5e-3F;
    const double narrow = loss_at(h) - loss_at(-h);
    const double wide = loss_at(2 * h) - loss_at(-2 * h);
    const double slope = (8 * narrow - wide) / (12 * static_cast<double>(h));  // without the third derivative
    double expected = 0;
    double norm = 0;
    for (std::int64_t i = 0; i < entry.spec.elements(); ++i) {
      const double g = gradient[static_cast<std::size_t>(entry.offset + i)];
      expected += g * test::random_value(4, 0, i);
      norm += g * g;
    }
    EXPECT_NEAR(slope, expected, 2e-3 * std::sqrt(norm) + 2e-5) << entry.spec.layer << "." << entry.spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, GraphGradient,
    testing::Combine(testing::Values(&graph, &dense_block),
                     testing::Values(SegmentationLoss{}, SegmentationLoss{.cross_entropy = 0, .dice = 1},
                                     SegmentationLoss{.dice = 0.5, .class_weights = {1, 4, 2}, .ignore_label = 2})));

}  // namespace
}  // namespace halograd
