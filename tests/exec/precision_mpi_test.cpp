// Both networks in bf16, and on a GPU in tf32: beside float32, and on grids and groups beside one rank, within what
// their bits allow.
#include "exec/support.hpp"
#include "halograd/device/cuda_device.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "halograd/models/unet3d.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

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

/// How far a precision may be from float32, relative.
struct Bounds {
  double loss;       ///< of the first step
  double curve;      ///< of losses, as a share of the first
  double gradients;  ///< of the first step
  double memory;     ///< of activations, as a share of float32's: statistics and the dense head stay as they are
};

/// tf32 rounds to 10 bits where bf16 has 7: eight times finer, and the first loss follows. Gradients follow by the root
/// of it, where a share of the signs before a ReLU goes with the rounding; so nearly do steps of Adam, which begin with
/// the signs of gradients. (Rounding the weights alone to 7 and to 10 bits, in float32, shows 8 and 2.6 times closer
/// gradients of CosmoFlow and the U-Net, curves 2 times.)
Bounds bounds_of(Precision precision) {
  const Bounds bf16{.loss = 0.01, .curve = 0.03, .gradients = 0.35, .memory = 0.53};
  if (precision == Precision::bf16) return bf16;
  return {.loss = bf16.loss / 8, .curve = bf16.curve / 2, .gradients = bf16.gradients / std::sqrt(8), .memory = 1.05};
}

/// Why the device under test has no such precision; empty where it has.
std::string why_without(Precision precision) {
  if (precision != Precision::tf32) return "";
  if (test::device_under_test(Backend::cpu, Communicator::world()).backend() != Backend::cuda)
    return "processors have no TF32";
  const bool old = std::ranges::any_of(cuda_devices(), [](const CudaDeviceInfo& gpu) { return gpu.major < 8; });
  return old ? "a GPU older than compute capability 8.0 has no TF32" : "";
}

class LowPrecision : public testing::TestWithParam<Precision> {
protected:
  void SetUp() override {
    const std::string reason = why_without(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(LowPrecision, TrainsAsFloatsDo) {
  if (Communicator::world().size() > 1) GTEST_SKIP() << "concerns one rank";
  const Bounds bounds = bounds_of(GetParam());
  for (const Case& each : cases()) {
    const Trace floats = run(each, Communicator::self(), {}, Precision::f32);
    const Trace rounded = run(each, Communicator::self(), {}, GetParam());
    EXPECT_NEAR(rounded.losses.front() / floats.losses.front(), 1, bounds.loss) << each.name;
    EXPECT_LE(farthest(rounded, floats), bounds.curve) << each.name;
    EXPECT_LE(apart(rounded, floats), bounds.gradients) << each.name;
    EXPECT_GT(apart(rounded, floats), 1e-4) << each.name << ": are they floats?";
    EXPECT_LE(static_cast<double>(rounded.arena_bytes), bounds.memory * static_cast<double>(floats.arena_bytes))
        << each.name;
  }
}

/// Another grid rounds other sums, no further than the precision is from float32 anyway.
TEST_P(LowPrecision, GridsAgreeWithinItsRounding) {
  const Communicator world = Communicator::world();
  if (grids_for(world.size()).empty()) GTEST_SKIP() << "of 2 and 4 ranks";
  const Bounds bounds = bounds_of(GetParam());
  for (const Case& each : cases()) {
    const Trace alone = run(each, Communicator::self(), {}, GetParam());
    const double rounding = apart(alone, run(each, Communicator::self(), {}, Precision::f32));
    for (const Extent& parts : grids_for(world.size())) {
      const ProcessGrid grid = test::grid_of(parts, world.size());
      const Trace sharded = run(each, world, grid, GetParam());
      const std::string where = fmt::format("{} {}", each.name, grid.spatial_name());
      EXPECT_NEAR(sharded.losses.front() / alone.losses.front(), 1, bounds.loss) << where;
      EXPECT_LE(farthest(sharded, alone), bounds.curve) << where;
      EXPECT_LE(apart(sharded, alone), 1.5 * rounding) << where;
    }
  }
}

/// The same grid gives the same bits, run after run.
TEST_P(LowPrecision, IsTheSameEveryTime) {
  const Communicator world = Communicator::world();
  if (grids_for(world.size()).empty()) GTEST_SKIP() << "of 2 and 4 ranks";
  const Case each = cases().front();
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).front(), world.size());
  const Trace first = run(each, world, grid, GetParam());
  const Trace second = run(each, world, grid, GetParam());
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

INSTANTIATE_TEST_SUITE_P(Precisions, LowPrecision, testing::Values(Precision::bf16, Precision::tf32),
                         [](const auto& tested) { return std::string(precision_name(tested.param)); });

}  // namespace
}  // namespace halograd
