#include "halograd/core/error.hpp"
#include "halograd/models/unet3d.hpp"
#include "halograd/plan/compiler.hpp"
#include "plan/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace halograd {
namespace {

Plan compile_unet(std::int64_t width, const ProcessGrid& grid, std::int64_t rank, std::int64_t batch = 1,
                  Mode mode = Mode::train) {
  return compile(unet3d({.width = width}), {.grid = grid, .rank = rank, .batch = batch, .mode = mode});
}

double activation_bytes(const Plan& plan) {
  return static_cast<double>(plan.arena_bytes + plan.input_bytes() + plan.label_bytes());
}

template <typename Units>
const auto& named(const Units& units, const std::string& name) {
  return *std::ranges::find_if(units, [&](const auto& unit) { return unit.name == name; });
}

TEST(GraphPlan, ASkipIsWrittenStraightIntoItsPlaceInTheJoin) {
  const Plan plan = compile_unet(32, {}, 0);
  const ConvolutionUnit& conv13 = named(plan.convolutions, "conv13");
  const ChainUnit& skip = named(plan.chains, "bn2+relu2");
  EXPECT_EQ(skip.dst.buffer, conv13.x.buffer);
  EXPECT_EQ(skip.dst.pitch, 192);
  EXPECT_EQ(skip.dst.offset, 128);  // behind the deconvolution's channels
  EXPECT_EQ(skip.dout.buffer, conv13.dx.buffer);
  EXPECT_EQ(skip.dout.offset, 128);
  // The pool reads it there, and adds its gradient to what conv13 has left.
  const ChainUnit& pool = named(plan.chains, "pool1");
  EXPECT_EQ(pool.y, skip.dst);
  EXPECT_EQ(pool.dy, skip.dout);
  EXPECT_TRUE(pool.desc.accumulate);
  // The deconvolution's output, dense, is copied; there are no other copies.
  ASSERT_EQ(plan.copies.size(), 6U);
  EXPECT_EQ(plan.copies[2].to.buffer, conv13.x.buffer);
  EXPECT_EQ(plan.copies[2].to.offset, 0);
  EXPECT_EQ(plan.copies[2].channels, 128);
}

TEST(GraphPlan, ASkipsHaloTravelsLongBeforeItIsNeeded) {
  const Plan plan = compile_unet(64, {1, 2, 1, 1}, 0);
  const int skip = test::exchange_named(plan, "conv13 halo of bn2+relu2");
  const int up = test::exchange_named(plan, "conv13 halo of concat3 copy");
  ASSERT_GE(skip, 0);
  ASSERT_GE(up, 0);
  const int conv3 = static_cast<int>(&named(plan.convolutions, "conv3") - plan.convolutions.data());
  const int conv13 = static_cast<int>(&named(plan.convolutions, "conv13") - plan.convolutions.data());
  EXPECT_LT(test::find(plan, StepKind::exchange_start, skip), test::find(plan, StepKind::convolution_forward, conv3));
  EXPECT_LT(test::find(plan, StepKind::exchange_start, up), test::find(plan, StepKind::exchange_wait, skip));
  EXPECT_LT(test::find(plan, StepKind::exchange_wait, skip), test::find(plan, StepKind::convolution_forward, conv13));
  EXPECT_LT(test::find(plan, StepKind::exchange_wait, up), test::find(plan, StepKind::convolution_forward, conv13));
}

TEST(GraphPlan, LivingBuffersNeverOverlap) {
  for (const ProcessGrid& grid : {ProcessGrid{}, ProcessGrid{1, 2, 1, 1}, ProcessGrid{2, 2, 2, 2}}) {
    for (const Mode mode : {Mode::train, Mode::evaluate, Mode::predict}) {
      const Plan plan = compile_unet(40, grid, grid.size() - 1, 3, mode);
      test::expect_living_buffers_apart(plan);
    }
  }
}

/// 8 bytes × (2·input + every convolution, batch norm, activation and pooling output): what keeping everything takes.
TEST(GraphPlan, TheArenaIsLessThanHalfOfKeepingEverything) {
  const Plan plan = compile_unet(128, {}, 0);
  const double everything = paper_figures(unet3d({.width = 128})).memory_bytes_with_norms;
  EXPECT_LE(activation_bytes(plan), 0.45 * everything);
  EXPECT_LE(activation_bytes(plan), 0.395 * everything);  // as it is
  for (const ProcessGrid& grid : {ProcessGrid{1, 2, 1, 1}, ProcessGrid{1, 1, 2, 1}, ProcessGrid{1, 1, 1, 2}}) {
    EXPECT_LE(activation_bytes(compile_unet(128, grid, 0)), 0.53 * activation_bytes(plan)) << grid.spatial_name();
  }
}

TEST(GraphPlan, AJoinOfUnlikePartitionsMovesTheUpsampledOne) {
  // 40 voxels in 2 parts: 20, 10, 5, then 3 and 2, doubled to 6 and 4 where the skip has 5 and 5.
  const Plan plan = compile_unet(40, {1, 2, 1, 1}, 0);
  const auto moved = std::ranges::find(plan.placements, true, &LayerPlacement::resharded);
  ASSERT_NE(moved, plan.placements.end());
  EXPECT_EQ(moved->name, "concat1 reshard");
  EXPECT_EQ(moved->copied_from, "deconv1");
  EXPECT_EQ(std::ranges::count(plan.placements, true, &LayerPlacement::resharded), 1);
  EXPECT_EQ(named(plan.chains, "bn6+relu6").dst.box, (Box{{0, 0, 0}, {6, 10, 10}}));  // with conv9's margin
}

/// Ranks of a group compile apart and must agree.
TEST(GraphPlan, MessagesMatchBetweenRanks) {
  for (const ProcessGrid& grid : {ProcessGrid{1, 2, 2, 2}, ProcessGrid{1, 3, 2, 1}, ProcessGrid{1, 8, 1, 1}}) {
    std::vector<Plan> plans;
    for (std::int64_t rank = 0; rank < grid.size(); ++rank) plans.push_back(compile_unet(40, grid, rank));
    test::expect_matching_messages(plans);
  }
}

TEST(GraphPlan, WhatNothingLearnsFromHasNoBackwardPass) {
  Network net({2, Extent::cube(8)});
  const NodeId conv = net.add("conv1", Convolution{2});
  net.add("join", Concatenation{}, {NodeId{-1}, conv});
  net.add("conv2", Convolution{2});
  net.add("loss", SegmentationLoss{});
  const Plan plan = compile(net, {.grid = {1, 2, 1, 1}, .rank = 1});
  EXPECT_EQ(named(plan.convolutions, "conv1").dx.buffer, no_buffer);  // it reads a copy of the input
  EXPECT_GE(named(plan.convolutions, "conv2").dx.buffer, 0);
  EXPECT_EQ(std::ranges::count(plan.exchanges, std::string("conv1 gradient return"), &ExchangePlan::name), 0);
}

TEST(GraphPlan, NothingMayBeLeftOver) {
  Network net({1, Extent::cube(8)});
  const NodeId conv = net.add("conv1", Convolution{2});
  net.add("dangling", LeakyRelu{}, {conv});
  net.add("conv2", Convolution{2}, {conv});
  net.add("loss", SegmentationLoss{});
  EXPECT_THROW(compile(net, {}), UsageError);
}

}  // namespace
}  // namespace halograd
