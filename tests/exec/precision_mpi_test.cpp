// Both networks in bf16: beside float32, and on grids and groups beside one rank, within what bf16's 8 bits allow.
#include "exec/support.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "halograd/models/unet3d.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace halograd {
namespace {

constexpr std::uint64_t seed = 3;
constexpr std::int64_t batch = 2;
constexpr std::int64_t steps = 10;

struct Case {
  const char* name;
  Network network;
  double rate;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"cosmoflow", cosmoflow({.width = 32, .dropout_keep = 1}), 1e-4});
  all.push_back({"unet3d", unet3d({.width = 16, .channels = 1, .classes = 3, .base_channels = 4}), 1e-3});
  return all;
}

struct Trace {
  std::vector<double> losses;
  std::vector<float> gradients;  ///< of the first step
  std::int64_t arena_bytes = 0;
};

Trace run(const Case& each, const Communicator& world, const ProcessGrid& grid, Precision precision) {
  Executor executor(
      each.network, world,
      {.grid = grid, .device = test::device_under_test(Backend::cpu, world), .precision = precision, .seed = seed});
  const test::RandomBatch samples(executor.prepare(Mode::train, batch), seed);
  Trace trace{.arena_bytes = executor.arena_bytes()};
  for (std::int64_t step = 0; step < steps; ++step) {
    trace.losses.push_back(executor.train(samples.view(), step, each.rate).loss);
    if (step > 0) continue;
    executor.parameters().to_host();
    const float* const gradients = executor.parameters().gradients();
    trace.gradients.assign(gradients, gradients + executor.parameters().trainable_elements());
  }
  return trace;
}

double apart(const Trace& a, const Trace& b) {
  return test::relative_l2(a.gradients.data(), b.gradients.data(), static_cast<std::int64_t>(b.gradients.size()));
}

/// The largest difference of two curves, as a share of the first loss.
double farthest(const Trace& a, const Trace& b) {
  double most = 0;
  for (std::size_t i = 0; i < b.losses.size(); ++i) {
    most = std::max(most, std::abs(a.losses[i] - b.losses[i]) / b.losses.front());
  }
  return most;
}

/// None of more ranks: each of them would run the whole network, too.
std::vector<Extent> grids_for(int ranks) {
  if (ranks == 4) return {{2, 2, 1}, {1, 1, 2}};
  if (ranks == 2) return {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1, 1, 1}};
  return {};
}

TEST(Bf16, TrainsAsFloatsDoInHalfTheMemory) {
  if (Communicator::world().size() > 1) GTEST_SKIP() << "concerns one rank";
  for (const Case& each : cases()) {
    const Trace floats = run(each, Communicator::self(), {}, Precision::f32);
    const Trace halves = run(each, Communicator::self(), {}, Precision::bf16);
    EXPECT_NEAR(halves.losses.front() / floats.losses.front(), 1, 0.01) << each.name;
    EXPECT_LE(farthest(halves, floats), 0.03) << each.name;
    EXPECT_LE(apart(halves, floats), 0.35) << each.name;
    EXPECT_GT(apart(halves, floats), 1e-4) << each.name << ": is it bf16 at all?";
    // Statistics, masks of max pooling and the dense head stay as they are.
    EXPECT_LE(static_cast<double>(halves.arena_bytes), 0.53 * static_cast<double>(floats.arena_bytes)) << each.name;
  }
}

/// Another grid rounds other sums, no further than bf16 is from float32 anyway.
TEST(Bf16, GridsAgreeWithinItsRounding) {
  const Communicator world = Communicator::world();
  if (grids_for(world.size()).empty()) GTEST_SKIP() << "of 2 and 4 ranks";
  for (const Case& each : cases()) {
    const Trace alone = run(each, Communicator::self(), {}, Precision::bf16);
    const double rounding = apart(alone, run(each, Communicator::self(), {}, Precision::f32));
    for (const Extent& parts : grids_for(world.size())) {
      const ProcessGrid grid = test::grid_of(parts, world.size());
      const Trace sharded = run(each, world, grid, Precision::bf16);
      const std::string where = fmt::format("{} {}", each.name, grid.spatial_name());
      EXPECT_NEAR(sharded.losses.front() / alone.losses.front(), 1, 0.01) << where;
      EXPECT_LE(farthest(sharded, alone), 0.03) << where;
      EXPECT_LE(apart(sharded, alone), 1.5 * rounding) << where;
    }
  }
}

/// The same grid gives the same bits, run after run.
TEST(Bf16, IsTheSameEveryTime) {
  const Communicator world = Communicator::world();
  if (grids_for(world.size()).empty()) GTEST_SKIP() << "of 2 and 4 ranks";
  const Case each = cases().front();
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).front(), world.size());
  const Trace first = run(each, world, grid, Precision::bf16);
  const Trace second = run(each, world, grid, Precision::bf16);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

}  // namespace
}  // namespace halograd
