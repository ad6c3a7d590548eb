// A network of one's own: defined, trained and evaluated. It learns to read the mean and the slope along depth off a
// noisy field. Run it plainly, or on several ranks with each field split among them: mpirun -n 4 small_network 2x2x1
#include "halograd/comm/session.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/random.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/optim/schedule.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace {

using namespace halograd;

constexpr std::int64_t width = 16;
constexpr std::int64_t batch_size = 16;

/// This rank's share of mini-batch `number`. Every number depends on the sample and the global voxel alone, so that the
/// same fields are made on every grid.
struct Fields {
  Fields(const Plan& plan, std::uint32_t number) {
    const Box& own = plan.input.own;
    for (std::int64_t n = 0; n < plan.samples.count; ++n) {
      const auto sample = static_cast<std::uint32_t>(plan.samples.first + n);
      const RandomStream random{.seed = 7, .purpose = number, .step = sample};
      const auto centred = [&](std::int64_t i) { return 2 * random.uniform(static_cast<std::uint64_t>(i)) - 1; };
      const float mean = centred(0);
      const float slope = centred(1);
      targets.insert(targets.end(), {mean, slope});
      std::vector<float>& field = voxels.emplace_back();
      for (std::int64_t d = own.lo.d; d < own.hi.d; ++d) {
        const float depth = (2 * static_cast<float>(d) + 1) / width - 1;
        for (std::int64_t h = own.lo.h; h < own.hi.h; ++h) {
          for (std::int64_t w = own.lo.w; w < own.hi.w; ++w) {
            field.push_back(mean + slope * depth + centred(2 + (d * width + h) * width + w) / 4);
          }
        }
      }
    }
    batch = {.size = plan.batch, .samples = {}, .targets = targets.data()};
    for (const auto& field : voxels) batch.samples.push_back({.data = field.data(), .name = "field"});
  }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  std::vector<std::vector<float>> voxels;
  std::vector<float> targets;
  MiniBatch batch;
};

Network make_network() {
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
  return network;
}

void run(const std::string& grid) {
  const Communicator world = Communicator::world();
  Executor executor(make_network(), world, {.grid = ProcessGrid::parse(grid, world.size())});
  const Plan& plan = executor.prepare(Mode::train, batch_size);
  const LinearSchedule rate{.initial = 3e-3, .final_fraction = 0.01, .decay_steps = 200};
  for (std::uint32_t step = 0; step < 200; ++step) {
    const Fields fields(plan, step);
    const StepResult result = executor.train(fields.batch, step, rate.at(step));
    if (world.rank() == 0 && step % 25 == 0) fmt::print("step {:3}: loss {:.5f}\n", step, result.loss);
  }
  const Fields unseen(plan, 1000);
  const StepResult result = executor.evaluate(unseen.batch);
  if (world.rank() == 0) fmt::print("loss on unseen fields: {:.5f}\n", result.loss);
}

}  // namespace

int main(int argc, char** argv) {
  const MpiSession session(argc, argv);
  try {
    run(argc > 1 ? argv[1] : "1x1x1");
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    abort_job(error.exit_code());
  }
}
