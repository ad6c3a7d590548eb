#include "halograd/plan/plan.hpp"

#include "halograd/models/cosmoflow.hpp"
#include "halograd/models/unet3d.hpp"
#include "halograd/plan/compiler.hpp"
#include "plan/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace halograd {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

Plan compile_cosmoflow(std::int64_t width, const ProcessGrid& grid, std::int64_t rank, std::int64_t batch = 1,
                       Mode mode = Mode::train) {
  return compile(cosmoflow({.width = width}), {.grid = grid, .rank = rank, .batch = batch, .mode = mode});
}

/// A step's activations, the input among them, in bytes.
std::int64_t activation_bytes(const Plan& plan) {
  return plan.arena_bytes + plan.input_bytes();
}

TEST(Plan, HalosTravelWhileTheInteriorIsComputed) {
  const Plan plan = compile_cosmoflow(128, {1, 2, 1, 1}, 0);
  const int halo = test::exchange_named(plan, "conv2 halo");
  ASSERT_GE(halo, 0);
  const ChainUnit& chain = plan.chains[0];  // behind conv1, writes conv2's input
  ASSERT_EQ(chain.forward_parts.size(), 2U);
  EXPECT_EQ(chain.forward_parts[0], (Box{{31, 0, 0}, {32, 64, 64}}));  // the shell: one slab, next to rank 1
  EXPECT_EQ(chain.forward_parts[1], (Box{{0, 0, 0}, {31, 64, 64}}));
  const int shell = test::find(plan, StepKind::chain_forward, 0, 0);
  const int start = test::find(plan, StepKind::exchange_start, halo);
  const int interior = test::find(plan, StepKind::chain_forward, 0, 1);
  const int wait = test::find(plan, StepKind::exchange_wait, halo);
  const int convolution = test::find(plan, StepKind::convolution_forward, 1);
  EXPECT_LT(shell, start);
  EXPECT_LT(start, interior);
  EXPECT_LT(interior, wait);
  EXPECT_LT(wait, convolution);
}

/// Where kernels take boxes, outputs that need no margins are computed before those are awaited.
TEST(Plan, AConvolutionBeginsWithWhatItHas) {
  CompileOptions options{.grid = {1, 2, 2, 1}, .rank = 0, .traits = kernel_traits(Backend::cuda)};
  const Plan plan = compile(cosmoflow({.width = 128}), options);
  const auto parts_of = [](const Plan& of, std::size_t i) {
    return std::get<Conv3dDesc>(of.convolutions[i].desc).forward_parts;
  };
  const std::vector<Box> conv1 = parts_of(plan, 0);  // 64x64x128 voxels of 65x65x128
  ASSERT_EQ(conv1.size(), 3U);
  EXPECT_EQ(conv1[0], (Box{{0, 0, 0}, {63, 63, 128}}));
  EXPECT_EQ(conv1[1], (Box{{63, 0, 0}, {64, 64, 128}}));
  EXPECT_EQ(conv1[2], (Box{{0, 63, 0}, {63, 64, 128}}));
  const int halo = test::exchange_named(plan, "conv1 halo");
  const int wait = test::find(plan, StepKind::exchange_wait, halo);
  EXPECT_LT(test::find(plan, StepKind::exchange_start, halo), test::find(plan, StepKind::convolution_forward, 0, 0));
  EXPECT_LT(test::find(plan, StepKind::convolution_forward, 0, 0), wait);
  EXPECT_LT(wait, test::find(plan, StepKind::convolution_forward, 0, 1));
  EXPECT_LT(wait, test::find(plan, StepKind::convolution_forward, 0, 2));
  double flops = 0;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::convolution_forward && step.unit == 0) flops += step.flops;
  }
  EXPECT_DOUBLE_EQ(flops, plan.convolutions[0].forward_flops);
  // The next ones' margins fly while the chain before them computes its interior.
  for (std::size_t i = 1; i < plan.convolutions.size(); ++i)
    EXPECT_TRUE(parts_of(plan, i).empty()) << plan.convolutions[i].name;
  // Voxels of four channels are 8 bytes in bf16.
  options.precision = Precision::bf16;
  EXPECT_TRUE(parts_of(compile(cosmoflow({.width = 128}), options), 0).empty());
  // oneDNN takes dense buffers only.
  options.precision = Precision::f32;
  options.traits = {};
  EXPECT_TRUE(parts_of(compile(cosmoflow({.width = 128}), options), 0).empty());
}

/// Behind a deconvolution, which computes all at once, nothing else covers the flight of margins. (Of conv1's input,
/// neither, but its voxels of one channel are 4 bytes.)
TEST(Plan, AConvolutionBehindAJoinBeginsWithWhatItHas) {
  const Plan plan = compile(unet3d({.width = 64}), {.grid = {1, 2, 1, 1}, .traits = kernel_traits(Backend::cuda)});
  for (const ConvolutionUnit& unit : plan.convolutions) {
    const auto* desc = std::get_if<Conv3dDesc>(&unit.desc);
    if (desc == nullptr) continue;
    const bool expected = unit.name == "conv9" || unit.name == "conv11" || unit.name == "conv13";
    EXPECT_EQ(desc->forward_parts.size(), expected ? 2U : 0U) << unit.name;
  }
}

/// In the middle of a volume every side lacks something.
TEST(Plan, AConvolutionInTheMiddleLeavesAllSidesForLater) {
  const ProcessGrid grid{1, 3, 3, 3};
  const std::int64_t middle = grid.rank({.group = 0, .place = {1, 1, 1}});
  const Plan plan =
      compile(cosmoflow({.width = 96}), {.grid = grid, .rank = middle, .traits = kernel_traits(Backend::cuda)});
  const auto& conv1 = std::get<Conv3dDesc>(plan.convolutions[0].desc);
  ASSERT_EQ(conv1.forward_parts.size(), 7U);
  EXPECT_EQ(conv1.forward_parts[0], (Box{{1, 1, 1}, {31, 31, 31}}));
  std::int64_t voxels = 0;
  for (std::size_t part = 0; part < 7; ++part) {
    voxels += conv1.forward_parts[part].volume();
    EXPECT_GE(test::find(plan, StepKind::convolution_forward, 0, static_cast<int>(part)), 0);
  }
  EXPECT_EQ(voxels, conv1.out.volume());
}

TEST(Plan, FacesForPoolingTravelWhileMomentsAreTaken) {
  const Plan plan = compile_cosmoflow(128, {1, 2, 1, 1}, 1);
  const int faces = test::exchange_named(plan, plan.chains[0].name + " faces");
  ASSERT_GE(faces, 0);
  EXPECT_LT(test::find(plan, StepKind::exchange_start, faces), test::find(plan, StepKind::chain_moments, 0));
  EXPECT_LT(test::find(plan, StepKind::chain_moments, 0), test::find(plan, StepKind::exchange_wait, faces));
  // An even cut: the window 3/2/1 of rank 1's first output reads one voxel of rank 0.
  EXPECT_EQ(plan.chains[0].desc.faces, (Halo{{1, 0, 0}, {0, 0, 0}}));
  EXPECT_EQ(compile_cosmoflow(128, {1, 2, 1, 1}, 0).chains[0].desc.returned, (Halo{{0, 0, 0}, {1, 0, 0}}));
}

TEST(Plan, GradientsOfMarginsComeHomeDuringBackwardWeights) {
  const Plan plan = compile_cosmoflow(128, {1, 2, 1, 1}, 0);
  const int home = test::exchange_named(plan, "conv2 gradient return");
  ASSERT_GE(home, 0);
  EXPECT_LT(test::find(plan, StepKind::convolution_backward_data, 1), test::find(plan, StepKind::exchange_start, home));
  EXPECT_LT(test::find(plan, StepKind::exchange_start, home),
            test::find(plan, StepKind::convolution_backward_weights, 1));
  EXPECT_LT(test::find(plan, StepKind::convolution_backward_weights, 1),
            test::find(plan, StepKind::exchange_wait, home));
  EXPECT_LT(test::find(plan, StepKind::exchange_wait, home), test::find(plan, StepKind::chain_backward_data, 0));
}

TEST(Plan, BucketsAreReducedWhileBackwardStillRuns) {
  const Plan plan = compile_cosmoflow(128, {2, 1, 1, 1}, 0, 2);
  ASSERT_GE(plan.buckets.size(), 3U);
  const int last_backward = test::find(plan, StepKind::convolution_backward_weights, 0);
  for (std::size_t i = 0; i + 1 < plan.buckets.size(); ++i) {
    const int start = test::find(plan, StepKind::bucket_start, static_cast<int>(i));
    EXPECT_LT(start, last_backward) << "bucket " << i;
    EXPECT_GT(test::find(plan, StepKind::bucket_wait, static_cast<int>(i)), last_backward) << "bucket " << i;
  }
  std::int64_t end = 0;
  for (const BucketUnit& bucket : plan.buckets) {
    EXPECT_EQ(bucket.offset, end);
    end += bucket.count;
  }
  EXPECT_EQ(end, 9'439'652);
  EXPECT_EQ(plan.trainable_elements, end);
}

TEST(Plan, StepsOfOneRankAloneHaveNoMessages) {
  const Plan plan = compile_cosmoflow(64, {}, 0, 4);
  EXPECT_TRUE(plan.exchanges.empty());
  for (const Step& step : plan.steps) {
    EXPECT_NE(step.kind, StepKind::bucket_start);
    if (step.kind != StepKind::loss_sum_start) {
      EXPECT_EQ(step.message_bytes, 0) << step_kind_name(step.kind);
    }
  }
}

struct Setting {
  std::int64_t width;
  ProcessGrid grid;
  std::int64_t batch;
};

class PlanProperties : public testing::TestWithParam<Setting> {};

TEST_P(PlanProperties, LivingBuffersNeverOverlap) {
  const auto& [width, grid, batch] = GetParam();
  for (const Mode mode : {Mode::train, Mode::evaluate, Mode::predict}) {
    const Plan plan = compile_cosmoflow(width, grid, grid.size() - 1, batch, mode);
    test::expect_living_buffers_apart(plan);
  }
}

/// So that it can be filled for the next step, whatever that is, while this one runs.
TEST_P(PlanProperties, TheInputAloneLiesOutsideTheArenaTheSameForEveryModeAndSize) {
  const auto& [width, grid, batch] = GetParam();
  for (std::int64_t rank = 0; rank < grid.size(); ++rank) {
    const Plan first = compile_cosmoflow(width, grid, rank, 1, Mode::predict);
    for (const Mode mode : {Mode::train, Mode::evaluate, Mode::predict}) {
      const Plan plan = compile_cosmoflow(width, grid, rank, batch, mode);
      EXPECT_EQ(plan.input.tile.box, first.input.tile.box);
      EXPECT_EQ(plan.input_bytes(), 4 * plan.samples.count * 4 * plan.input.tile.box.volume());
      EXPECT_EQ(std::ranges::count(plan.buffers, true, &BufferPlan::external), 1);
      EXPECT_TRUE(plan.buffers[static_cast<std::size_t>(plan.input.tile.buffer)].external);
      std::int64_t end = 0;
      for (const BufferPlan& buffer : plan.buffers) {
        if (buffer.first_step >= 0 && !buffer.external) end = std::max(end, buffer.offset + buffer.bytes);
      }
      EXPECT_EQ(plan.arena_bytes, (end + 4095) / 4096 * 4096);
    }
  }
}

/// Every message has its counterpart: ranks of a group compile apart and must agree.
TEST_P(PlanProperties, MessagesMatchBetweenRanks) {
  const auto& [width, grid, batch] = GetParam();
  std::vector<Plan> plans;
  for (std::int64_t rank = 0; rank < grid.spatial_size(); ++rank) {
    plans.push_back(compile_cosmoflow(width, grid, rank, batch));
  }
  test::expect_matching_messages(plans);
}

TEST_P(PlanProperties, CollectivesComeInTheSameOrderOnAllRanks) {
  const auto& [width, grid, batch] = GetParam();
  const auto collectives = [&](std::int64_t rank) {
    std::vector<std::pair<StepKind, int>> list;
    for (const Step& step : compile_cosmoflow(width, grid, rank, batch).steps) {
      if (step.kind == StepKind::statistics_start || step.kind == StepKind::sums_start ||
          step.kind == StepKind::loss_sum_start || step.kind == StepKind::bucket_start) {
        list.emplace_back(step.kind, step.unit);
      }
    }
    return list;
  };
  for (std::int64_t rank = 1; rank < grid.size(); ++rank) EXPECT_EQ(collectives(rank), collectives(0)) << rank;
}

INSTANTIATE_TEST_SUITE_P(Grids, PlanProperties,
                         testing::Values(Setting{32, {}, 2}, Setting{64, {1, 2, 1, 1}, 4}, Setting{64, {2, 3, 1, 1}, 3},
                                         Setting{64, {1, 2, 2, 2}, 1}, Setting{48, {1, 1, 3, 2}, 2},
                                         Setting{32, {1, 8, 2, 1}, 1}, Setting{128, {3, 1, 1, 2}, 2},
                                         Setting{128, {2, 4, 4, 4}, 1}));

TEST(Plan, TheLargestNetworkFitsSixteenGibibytes) {
  const Plan whole = compile_cosmoflow(512, {}, 0);
  EXPECT_LE(static_cast<double>(activation_bytes(whole)) / gibibyte, 14.6);
  // y1 8, x1 2, y2 2, x2 and its gradient 1 each: what the backward pass of conv2 can't do without.
  EXPECT_GE(static_cast<double>(activation_bytes(whole)) / gibibyte, 14.0);
  for (const ProcessGrid& grid : {ProcessGrid{1, 2, 1, 1}, ProcessGrid{1, 1, 1, 2}}) {
    for (const std::int64_t rank : {0, 1}) {
      const Plan half = compile_cosmoflow(512, grid, rank);
      const double needed = static_cast<double>(activation_bytes(half) + half.message_buffer_bytes());
      EXPECT_LE(needed, 0.53 * static_cast<double>(activation_bytes(whole))) << grid.spatial_name();
    }
  }
}

TEST(Plan, TheInputOutsideTheArenaCostsNothing) {
  // What the arena took with the input in it.
  EXPECT_LE(activation_bytes(compile_cosmoflow(128, {}, 0)), 234'897'408);
  EXPECT_LE(activation_bytes(compile_cosmoflow(128, {}, 0, 1, Mode::evaluate)), 184'561'664);
  EXPECT_LE(activation_bytes(compile_cosmoflow(128, {}, 0, 1, Mode::predict)), 184'557'568);
}

TEST(Plan, ThinShardsAreMovedToACoarserPartition) {
  const Plan plan = compile_cosmoflow(32, {1, 8, 1, 1}, 3);
  // 32 voxels in 8 slabs of 4; pools leave 2, 1 and then nothing on some ranks, so conv3's block runs on fewer parts.
  const auto moved = std::ranges::find(plan.placements, true, &LayerPlacement::resharded);
  ASSERT_NE(moved, plan.placements.end());
  EXPECT_NE(plan.placements.front().partition, moved->partition);
  EXPECT_EQ(plan.placements.back().partition, "1x1x1");
}

TEST(Plan, AGroupWithoutSamplesJoinsEveryCollectiveAndComputesNothing) {
  const Plan idle = compile_cosmoflow(32, {2, 1, 1, 1}, 1, 1);
  EXPECT_EQ(idle.samples.count, 0);
  for (const Step& step : idle.steps) {
    EXPECT_TRUE(step.kind == StepKind::statistics_start || step.kind == StepKind::statistics_wait ||
                step.kind == StepKind::sums_start || step.kind == StepKind::sums_wait ||
                step.kind == StepKind::loss_sum_start || step.kind == StepKind::loss_sum_wait ||
                step.kind == StepKind::bucket_start || step.kind == StepKind::bucket_wait ||
                step.kind == StepKind::update)
        << step_kind_name(step.kind);
  }
  for (const BucketUnit& bucket : idle.buckets) EXPECT_FALSE(bucket.contributes);
}

}  // namespace
}  // namespace halograd
