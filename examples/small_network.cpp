// A network of one's own: defined, trained and evaluated. It learns to read the mean and the slope along depth off a
// noisy field. Run it plainly, or on several ranks with each field split among them: mpirun -n 4 small_network 2x2x1
#include "halograd/comm/session.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/exec/generated_batch.hpp"

#include <cstdio>

using namespace halograd;

constexpr std::int64_t width = 16;

/// Mini-batch `number`: fields of mean + slope · depth + noise, and (mean, slope) to be found.
GeneratedBatch make_batch(const Plan& plan, std::uint32_t number) {
  const auto random = [number](std::int64_t sample, std::int64_t i) {  // in [-1, 1), the same on every grid
    return 2 * RandomStream{7, number, static_cast<std::uint32_t>(sample)}.uniform(static_cast<std::uint64_t>(i)) - 1;
  };
  const auto field = [=](std::int64_t sample, const Index& at, std::int64_t) {
    const float depth = (2 * static_cast<float>(at.d) + 1) / width - 1;
    return random(sample, 0) + random(sample, 1) * depth + random(sample, 2 + (at.d * width + at.h) * width + at.w) / 4;
  };
  return {plan, field, [=](std::int64_t sample, const Index&, std::int64_t which) { return random(sample, which); }};
}

int main(int argc, char** argv) {
  const MpiSession session(argc, argv);
  const Communicator world = Communicator::world();

  Network network({.channels = 1, .extent = Extent::cube(width)});
  network.add("conv1", Convolution{.channels = 8});
  network.add("bn1", BatchNorm{});
  network.add("relu1", LeakyRelu{});
  network.add("pool1", Pool{});
  network.add("conv2", Convolution{.channels = 8});
  network.add("relu2", LeakyRelu{});
  network.add("pool2", Pool{.kind = PoolKind::max});
  network.add("flatten", Flatten{});
  network.add("fc1", FullyConnected{.features = 2});
  network.add("loss", MeanSquaredError{});

  Executor executor(network, world, {.grid = ProcessGrid::parse(argc > 1 ? argv[1] : "1x1x1", world.size())});
  const Plan& plan = executor.prepare(Mode::train, 16);
  for (std::uint32_t step = 0; step < 200; ++step) {
    const double loss = executor.train(make_batch(plan, step).view(), step, 3e-3 * (1 - step / 200.0)).loss;
    if (world.rank() == 0 && step % 25 == 0) std::printf("step %3u: loss %.5f\n", step, loss);
  }
  const double loss = executor.evaluate(make_batch(plan, 1000).view()).loss;
  if (world.rank() == 0) std::printf("loss on unseen fields: %.5f\n", loss);
}
