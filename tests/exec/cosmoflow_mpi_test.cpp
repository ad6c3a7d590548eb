// CosmoFlow (W = 64, of plain loops 32; batch norm, dropout on) on grids and groups against one rank: the first step's
// loss and every gradient, then ten steps of SGD and of Adam.
#include "exec/support.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/models/cosmoflow.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace halograd {
namespace {

constexpr std::uint64_t seed = 3;

/// The reference kernels take seconds for a step of 64³.
Network network(Backend backend) {
  return cosmoflow({.width = backend == Backend::reference ? 32 : 64});
}

ExecutorOptions options(const ProcessGrid& grid, Backend backend, OptimizerKind kind) {
  return {.grid = grid,
          .device = test::device_under_test(backend, Communicator::world()),
          .optimizer = {.kind = kind},
          .seed = seed};
}

/// What one step, or ten, leave behind.
struct Trace {
  std::vector<double> losses;
  std::vector<float> gradients;  ///< of the first step, all parameters
};

/// The same samples at every step, so that only the weights change.
Trace run(const Communicator& world, const ExecutorOptions& options, std::int64_t batch, std::int64_t steps,
          double rate) {
  Executor executor(network(options.device.backend()), world, options);
  const test::RandomBatch samples(executor.prepare(Mode::train, batch), seed);
  Trace trace;
  for (std::int64_t step = 0; step < steps; ++step) {
    trace.losses.push_back(executor.train(samples.view(), step, rate).loss);
    if (step > 0) continue;
    executor.parameters().to_host();
    const float* const gradients = executor.parameters().gradients();
    trace.gradients.assign(gradients, gradients + executor.parameters().trainable_elements());
  }
  return trace;
}

/// Rank 0 runs it alone and tells the others.
Trace run_alone(const Communicator& world, Backend backend, OptimizerKind kind, std::int64_t batch, std::int64_t steps,
                double rate) {
  Trace trace;
  const ExecutorOptions own = options({}, backend, kind);  // collective
  if (world.rank() == 0) trace = run(Communicator::self(), own, batch, steps, rate);
  trace.losses.resize(static_cast<std::size_t>(steps));
  trace.gradients.resize(static_cast<std::size_t>(network(backend).trainable_parameters()));
  world.broadcast(trace.losses.data(), 8 * steps, 0);
  world.broadcast(trace.gradients.data(), 4 * static_cast<std::int64_t>(trace.gradients.size()), 0);
  return trace;
}

std::vector<Extent> grids_for(int ranks) {
  switch (ranks) {
    case 2: return {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1, 1, 1}};
    case 3: return {{3, 1, 1}};
    case 4: return {{2, 2, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}};
    case 6: return {{3, 1, 1}};
    case 8: return {{2, 2, 2}, {2, 2, 1}};
    default: return {{1, 1, 1}};
  }
}

void compare_first_step(Backend backend, const Trace& actual, const Trace& expected, double bound,
                        const std::string& where) {
  EXPECT_NEAR(actual.losses[0], expected.losses[0], 1e-5 * expected.losses[0]) << where;
  test::compare_gradients(network(backend), actual.gradients, expected.gradients, bound, where);
}

TEST(Cosmoflow, FirstStepWithReferenceConvolutions) {
  const Communicator world = Communicator::world();
  if (world.size() == 1) GTEST_SKIP() << "one rank is what the others are compared with";
  const Trace four = run_alone(world, Backend::reference, OptimizerKind::sgd, 4, 1, 0);
  for (const Extent& parts : grids_for(world.size())) {
    const ProcessGrid grid = test::grid_of(parts, world.size());
    const std::string where = fmt::format("grid {}, {} groups", grid.spatial_name(), grid.data);
    compare_first_step(Backend::reference, run(world, options(grid, Backend::reference, OptimizerKind::sgd), 4, 1, 0),
                       four, 1e-5, where);
  }
}

TEST(Cosmoflow, FirstStepOfABatchThatGroupsDoNotDivide) {
  const Communicator world = Communicator::world();
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).back(), world.size());
  if (grid.data == 1) GTEST_SKIP() << "one group";
  const Trace three = run_alone(world, Backend::reference, OptimizerKind::sgd, 3, 1, 0);
  compare_first_step(Backend::reference, run(world, options(grid, Backend::reference, OptimizerKind::sgd), 3, 1, 0),
                     three, 1e-5, "batch 3 on " + grid.spatial_name());
  const Trace one = run_alone(world, Backend::cpu, OptimizerKind::sgd, 1, 1, 0);
  compare_first_step(Backend::cpu, run(world, options(grid, Backend::cpu, OptimizerKind::sgd), 1, 1, 0), one, 1e-3,
                     "batch 1, a group without samples, on " + grid.spatial_name());
}

struct TenSteps {
  OptimizerKind kind;
  double rate;
};

class CosmoflowTenSteps : public testing::TestWithParam<TenSteps> {};

TEST_P(CosmoflowTenSteps, FollowTheSameCurve) {
  const Communicator world = Communicator::world();
  const auto [kind, rate] = GetParam();
  const Trace alone = run_alone(world, Backend::cpu, kind, 4, 10, rate);
  if (world.size() == 1) {
    // The rate is safe where rounding alone (another thread count) moves the curve ten times less than the bound below.
    const int threads = thread_count();
    omp_set_num_threads(threads == 1 ? 2 : 1);
    const Trace other = run(world, options({}, Backend::cpu, kind), 4, 10, rate);
    omp_set_num_threads(threads);
    test::compare_losses(other.losses, alone.losses, 1e-5, "with another thread count");
    return;
  }
  const std::vector<Extent> grids = grids_for(world.size());
  for (const Extent& parts : grids) {
    // A curve takes ten times a first step: of many grids, those between the first and the last show theirs in that.
    const bool whole_curve = parts == grids.front() || parts == grids.back();
    const ProcessGrid grid = test::grid_of(parts, world.size());
    const std::string where = fmt::format("grid {}, {} groups", grid.spatial_name(), grid.data);
    const Trace sharded = run(world, options(grid, Backend::cpu, kind), 4, whole_curve ? 10 : 1, rate);
    compare_first_step(Backend::cpu, sharded, alone, 1e-3, where);
    if (whole_curve) test::compare_losses(sharded.losses, alone.losses, 1e-4, where);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, CosmoflowTenSteps,
                         testing::Values(TenSteps{OptimizerKind::sgd, 3e-5}, TenSteps{OptimizerKind::adam, 1e-5}),
                         [](const auto& test) { return test.param.kind == OptimizerKind::adam ? "adam" : "sgd"; });

TEST(Cosmoflow, GivesTheSameBitsTwice) {
  const Communicator world = Communicator::world();
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).front(), world.size());
  const Trace first = run(world, options(grid, Backend::cpu, OptimizerKind::adam), 2, 3, 1e-4);
  const Trace second = run(world, options(grid, Backend::cpu, OptimizerKind::adam), 2, 3, 1e-4);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

}  // namespace
}  // namespace halograd
