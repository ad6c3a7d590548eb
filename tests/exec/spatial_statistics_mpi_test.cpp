// Batch norm over one group's samples is what plain data parallelism computes: the mean over groups of what each would
// get alone, in gradients and in the saved averages.
#include "exec/support.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

const GlobalShape input{2, {8, 6, 6}};

Network network() {
  Network net(input);
  net.add("conv1", Convolution{3});
  net.add("bn1", BatchNorm{});
  net.add("relu1", LeakyRelu{});
  net.add("pool1", Pool{});
  net.add("flatten", Flatten{});
  net.add("fc1", FullyConnected{2});
  net.add("loss", MeanSquaredError{});
  return net;
}

VoxelFunction values(std::uint64_t seed, std::int64_t first_sample) {
  return [=](std::int64_t sample, const Index& at, std::int64_t channel) {
    const std::int64_t voxel = (at.d * input.extent.h + at.h) * input.extent.w + at.w;
    return test::random_value(seed, first_sample + sample, voxel * input.channels + channel);
  };
}

void check(std::int64_t batch) {
  const Communicator world = Communicator::world();
  const std::int64_t parts = world.size() / 2;
  const ProcessGrid grid{2, parts, 1, 1};
  Executor sharded(network(), world,
                   {.grid = grid, .device = Backend::reference, .statistics = StatisticsScope::spatial});
  const GeneratedBatch samples(sharded.prepare(Mode::train, batch), values(1, 0), values(2, 0));
  const double loss = sharded.train(samples.view(), 0, 0).loss;

  // Each group's share alone, on one rank.
  const std::vector<ParameterPlan>& parameters = sharded.parameters().parameters();
  std::vector<double> expected(static_cast<std::size_t>(sharded.parameters().trainable_elements()));
  std::vector<double> averages;
  double expected_loss = 0;
  for (const std::int64_t group : {0, 1}) {
    const SampleRange share = group_samples(batch, 2, group);
    const double weight = static_cast<double>(share.count) / static_cast<double>(batch);
    Executor alone(network(), Communicator::self(), {.device = Backend::reference});
    const GeneratedBatch own(alone.prepare(Mode::train, share.count), values(1, share.first), values(2, share.first));
    expected_loss += weight * alone.train(own.view(), 0, 0).loss;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += weight * alone.parameters().gradients()[i];
    std::size_t at = 0;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (parameters[p].spec.trainable) continue;
      for (std::int64_t c = 0; c < parameters[p].spec.elements(); ++c, ++at) {
        if (at == averages.size()) averages.push_back(0);
        averages[at] += 0.5 * alone.parameters().value(static_cast<int>(p))[c];
      }
    }
  }
  EXPECT_NEAR(loss, expected_loss, 1e-6 * expected_loss);
  const std::vector<float> gradients(expected.begin(), expected.end());
  EXPECT_LE(test::relative_l2(sharded.parameters().gradients(), gradients.data(),
                              static_cast<std::int64_t>(gradients.size())),
            1e-5);
  std::size_t at = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].spec.trainable) continue;
    for (std::int64_t c = 0; c < parameters[p].spec.elements(); ++c, ++at) {
      EXPECT_NEAR(sharded.parameters().value(static_cast<int>(p))[c], averages[at], 1e-6) << parameters[p].spec.name;
    }
  }
}

TEST(SpatialStatistics, AreTheMeanOverGroups) {
  if (Communicator::world().size() % 2 != 0) GTEST_SKIP() << "needs two groups";
  check(2);
  check(3);  // the first group has two samples, the second one
}

}  // namespace
}  // namespace halograd
