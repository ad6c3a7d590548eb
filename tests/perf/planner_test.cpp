#include "halograd/perf/planner.hpp"

#include "halograd/core/error.hpp"
#include "perf/support.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace halograd {
namespace {

using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

Shape shape_of(const ProcessGrid& grid) {
  return {grid.data, grid.depth, grid.height, grid.width};
}

/// Messages that take time, on the network more.
Machine slow_machine() {
  Machine machine = test::plain_machine(4);
  machine.settings[0].link = {{.from_bytes = 0, .latency_seconds = 1e-3, .bytes_per_second = 1e6}};
  machine.settings[0].reduction = test::power_sum(-12, 0.5, 1);
  machine.network = {{.from_bytes = 0, .latency_seconds = 5e-3, .bytes_per_second = 2e5}};
  machine.network_reduction = test::power_sum(-10, 0.5, 1);
  return machine;
}

TEST(Planner, ListsEveryGridOnce) {
  for (const auto& [batch, expected] : {std::pair{8, 20}, {7, 19}, {4, 19}, {2, 16}, {1, 10}}) {
    const std::vector<GridPrice> prices =
        price_grids(test::small_unet(), slow_machine(), all_grids(8), {.batch = batch});
    std::set<Shape> seen;
    for (const GridPrice& price : prices) {
      EXPECT_EQ(price.grid.size(), 8);
      EXPECT_LE(price.grid.data, batch);
      EXPECT_TRUE(seen.insert(shape_of(price.grid)).second) << price.grid.spatial_name();
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(expected)) << batch;
  }
}

TEST(Planner, TheFastestComesFirst) {
  const Network network = test::small_unet();
  const Machine machine = slow_machine();
  const PlanRequest request{.batch = 8};
  const std::vector<GridPrice> prices = price_grids(network, machine, all_grids(8), request);
  std::set<double> different;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    ASSERT_EQ(prices[i].refused, "") << prices[i].grid.spatial_name();
    EXPECT_TRUE(prices[i].fits);
    const double seconds = prices[i].cost.step.seconds();
    different.insert(seconds);
    EXPECT_GT(seconds, 0);
    if (i > 0) {
      EXPECT_GE(seconds, prices[i - 1].cost.step.seconds());
    }
    EXPECT_EQ(seconds, price_grid(network, machine, prices[i].grid, request).cost.step.seconds());
  }
  EXPECT_GE(different.size(), 7U);  // as many as there are grids but for the order of D, H and W
}

/// 2 voxels can't be cut in 8, nor in 4: some grids of 8 ranks can't be.
TEST(Planner, WhatCannotBeComesLastWithAReason) {
  Network flat({.channels = 2, .extent = {16, 2, 16}});
  flat.add("c1", Convolution{.channels = 4});
  flat.add("relu1", LeakyRelu{});
  flat.add("c2", Convolution{.channels = 4});
  flat.add("loss", MeanSquaredError{});
  Machine machine = slow_machine();
  const std::vector<GridPrice> all = price_grids(flat, machine, all_grids(8), {.batch = 8});
  ASSERT_EQ(all.size(), 20U);
  int refused = 0;
  for (const GridPrice& price : all) {
    if (price.refused.empty()) {
      EXPECT_EQ(refused, 0) << "behind what can't be";
      EXPECT_LE(price.grid.height, 2);
      continue;
    }
    ++refused;
    EXPECT_GT(price.grid.height, 2);
    EXPECT_FALSE(price.fits);
    // The reason is the compiler's.
    EXPECT_EQ(price.refused, test::message_of<UsageError>([&] { compile(flat, {.grid = price.grid, .batch = 8}); }));
  }
  EXPECT_EQ(refused, 4);  // h = 4: 1x4x1, 2x4x1, 1x4x2; h = 8
}

TEST(Planner, RespectsTheNodesMemory) {
  const Network network = test::small_unet();
  Machine machine = slow_machine();
  const PlanRequest request{.batch = 8};
  std::vector<std::int64_t> needed;
  for (const GridPrice& price : price_grids(network, machine, all_grids(8), request)) {
    needed.push_back(price.cost.memory_bytes * 4);  // four ranks on a node
  }
  std::ranges::sort(needed);
  const std::int64_t limit = needed[needed.size() / 2];
  EXPECT_LT(needed.front(), limit);
  EXPECT_LT(limit, needed.back());
  for (const std::int64_t memory : {limit, limit - 1}) {
    machine.node_memory_bytes = memory;
    const std::vector<GridPrice> prices = price_grids(network, machine, all_grids(8), request);
    std::size_t fitting = 0;
    for (std::size_t i = 0; i < prices.size(); ++i) {
      EXPECT_EQ(prices[i].fits, 4 * prices[i].cost.memory_bytes <= memory) << prices[i].grid.spatial_name();
      if (prices[i].fits) {
        EXPECT_EQ(fitting, i) << "behind what does not fit";
        ++fitting;
      }
      EXPECT_EQ(prices[i].refused, "");
    }
    const auto expected = std::ranges::count_if(needed, [&](std::int64_t bytes) { return bytes <= memory; });
    EXPECT_EQ(fitting, static_cast<std::size_t>(expected));
  }
}

TEST(Planner, AGridTakesAsLongAsItsSlowestRank) {
  const Network network = test::small_regression();
  const Machine machine = slow_machine();
  for (const ProcessGrid& grid : {ProcessGrid{1, 4, 1, 1}, ProcessGrid{2, 3, 1, 1}, ProcessGrid{1, 2, 2, 2}}) {
    double slowest = 0;
    std::int64_t memory = 0;
    for (std::int64_t rank = 0; rank < grid.size(); ++rank) {
      const PlanCost cost = price(compile(network, {.grid = grid, .rank = rank, .batch = 3}), machine);
      slowest = std::max(slowest, cost.step.seconds());
      memory = std::max(memory, cost.memory_bytes);
    }
    const GridPrice price = price_grid(network, machine, grid, {.batch = 3});
    EXPECT_EQ(price.cost.step.seconds(), slowest) << grid.spatial_name();
    EXPECT_EQ(price.cost.memory_bytes, memory) << grid.spatial_name();
  }
}

std::map<Shape, double> seconds_of(const Network& network, const Machine& machine, std::int64_t batch = 8) {
  std::map<Shape, double> seconds;
  for (const GridPrice& price : price_grids(network, machine, all_grids(8), {.batch = batch})) {
    seconds[shape_of(price.grid)] = price.cost.step.seconds();
  }
  return seconds;
}

TEST(Planner, AWorseMachineIsNeverFaster) {
  const Network network = test::small_unet();
  const Machine machine = slow_machine();
  const std::map<Shape, double> before = seconds_of(network, machine);
  Machine slow_link = machine;
  slow_link.settings[0].link[0].latency_seconds *= 8;
  Machine slow_network = machine;
  slow_network.network[0].bytes_per_second /= 8;
  slow_network.network_reduction[0].constant += 3;
  Machine slow_kernels = machine;
  for (auto& [kind, rate] : slow_kernels.settings[0].rates) rate.overhead_seconds = 1e-3;
  Machine no_overlap = machine;
  no_overlap.settings[0].overlap = 0;
  for (const Machine& worse : {slow_link, slow_network, slow_kernels, no_overlap}) {
    double more = 0;
    for (const auto& [shape, seconds] : seconds_of(network, worse)) {
      EXPECT_GE(seconds, before.at(shape) * (1 - 1e-12));
      more += seconds - before.at(shape);
    }
    EXPECT_GT(more, 0);
  }
  for (const auto& [shape, seconds] : seconds_of(network, machine, 16)) EXPECT_GT(seconds, before.at(shape));
}

/// With messages that cost nothing more groups or parts take no more time, nor does any grid scale better than ideally.
TEST(Planner, WithoutMessageCostsRanksShareTheWork) {
  const Network network = test::two_convolutions();
  const Machine machine = test::plain_machine(8);
  const double alone = price_grid(network, test::plain_machine(1), {}, {.batch = 8}).cost.step.convolution_seconds;
  for (const ProcessGrid& grid : {ProcessGrid{8, 1, 1, 1}, ProcessGrid{4, 2, 1, 1}, ProcessGrid{2, 2, 2, 1},
                                  ProcessGrid{1, 2, 2, 2}, ProcessGrid{1, 8, 1, 1}}) {
    EXPECT_DOUBLE_EQ(price_grid(network, machine, grid, {.batch = 8}).cost.step.convolution_seconds, alone / 8)
        << grid.spatial_name();
  }
}

TEST(Planner, WhatTheMachineCannotPriceIsRefused) {
  Machine machine = slow_machine();  // four ranks on a node
  machine.network.clear();
  for (const GridPrice& price : price_grids(test::small_unet(), machine, all_grids(8), {.batch = 8})) {
    const bool crosses = price.grid.spatial_size() > 4;  // smaller groups lie within a node
    EXPECT_EQ(price.refused, crosses ? "the machine file says nothing of messages between these ranks: start calibrate "
                                       "with as many on a node, or over two nodes"
                                     : "");
  }
}

TEST(Planner, AMachineThatWasNotMeasuredSoIsAnError) {
  EXPECT_EQ(test::message_of<UsageError>([] {
              price_grids(test::two_convolutions(), test::plain_machine(8), all_grids(8),
                          {.batch = 8, .price = {.setting = {.threads = 3}}});
            }),
            "plain was not measured with up to 8 rank(s) on a node of 3 thread(s): start calibrate so");
}

}  // namespace
}  // namespace halograd
