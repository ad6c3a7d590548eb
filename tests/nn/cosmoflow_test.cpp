#include "halograd/models/cosmoflow.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

/// Table I of the paper, to the digits there.
TEST(Cosmoflow, HasThePapersFigures) {
  struct Row {
    std::int64_t width;
    double gflops, forward_gflops, memory_gib;
  };
  for (const Row& row : {Row{128, 55.55, 18.52, 0.8237}, Row{256, 443.8, 147.9, 6.589}, Row{512, 3550, 1183, 52.71}}) {
    const Network net = cosmoflow({.width = row.width, .batch_norm = false});
    const PaperFigures figures = paper_figures(net);
    EXPECT_EQ(net.trainable_parameters(), 9'437'636);
    EXPECT_NEAR(figures.convolution_flops / 1e9, row.gflops, 0.00015 * row.gflops) << row.width;
    EXPECT_NEAR(figures.convolution_forward_flops / 1e9, row.forward_gflops, 0.0004 * row.forward_gflops) << row.width;
    EXPECT_NEAR(figures.memory_bytes / gibibyte, row.memory_gib, 0.0001 * row.memory_gib) << row.width;
  }
  EXPECT_EQ(cosmoflow({.width = 128}).trainable_parameters(), 9'437'636 + 2'016);
}

std::int64_t flattened(std::int64_t width, std::int64_t window) {
  const Network net = cosmoflow({.width = width, .pool_window = window});
  for (const Node& node : net.nodes()) {
    if (node.name == "flatten") return node.out.channels;
  }
  return 0;
}

TEST(Cosmoflow, TakesEveryMultipleOfSixteen) {
  for (const std::int64_t width : {32, 64, 128, 256, 512}) EXPECT_EQ(flattened(width, 3), 2048) << width;
  for (std::int64_t width = 32; width <= 320; width += 16) {
    EXPECT_GE(flattened(width, 3), 2048) << width;
    EXPECT_GE(flattened(width, 2), 2048) << width;
  }
  EXPECT_EQ(flattened(96, 2), 27 * 256);    // a window of 2 would leave one of 3 voxels: no pool there
  EXPECT_EQ(flattened(1024, 3), 64 * 256);  // seven pools leave 4
  EXPECT_THROW(cosmoflow({.width = 40}), UsageError);
  EXPECT_THROW(cosmoflow({.width = 16}), UsageError);
}

TEST(Network, RefusesWhatDoesNotFit) {
  Network net({1, Extent::cube(8)});
  net.add("conv1", Convolution{2});
  EXPECT_THROW(net.add("conv1", Convolution{2}), UsageError);
  EXPECT_THROW(net.add("fc1", FullyConnected{2}), UsageError);
  EXPECT_THROW(net.add("pool1", Pool{PoolKind::average, Window{Extent::cube(9), Extent::cube(2), {}}}), UsageError);
  EXPECT_THROW(net.add("pool2", Pool{PoolKind::max, Window{Extent::cube(7), Extent::cube(2), {}}}), UsageError);
  EXPECT_THROW(net.add("drop", Dropout{0.0F}), UsageError);
  net.add("loss", MeanSquaredError{});
  EXPECT_THROW(net.add("conv2", Convolution{2}), UsageError);
}

TEST(Parameters, StartAsGlorotSaysAndTheSameEveryTime) {
  const ParameterSpec spec{.layer = "conv",
                           .name = "weight",
                           .dims = {16, 4, 3, 3, 3},
                           .initializer = Initializer::glorot_uniform,
                           .fan_in = 4 * 27,
                           .fan_out = 16 * 27};
  std::vector<float> values(static_cast<std::size_t>(spec.elements()));
  std::vector<float> again(values.size());
  initialize(spec, 0, 1, values.data());
  initialize(spec, 0, 1, again.data());
  EXPECT_EQ(values, again);
  const double limit = std::sqrt(6.0 / (27 * (16 + 4)));
  double square = 0;
  for (const float value : values) {
    EXPECT_LE(std::abs(value), limit);
    square += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(square / static_cast<double>(values.size()), limit * limit / 3, 0.05 * limit * limit);
  initialize(spec, 1, 1, again.data());
  EXPECT_NE(values, again);
}

}  // namespace
}  // namespace halograd
