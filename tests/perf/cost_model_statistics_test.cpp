#include "halograd/perf/cost_model.hpp"
#include "perf/support.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

/// A normalised convolution of 8 channels, on a volume and with a batch.
Network normalised(const Layer& norm) {
  Network net({.channels = 4, .extent = {16, 8, 8}});
  net.add("c1", Convolution{.channels = 8});
  net.add("norm", norm);
  net.add("relu", LeakyRelu{});
  net.add("c2", Convolution{.channels = 8});
  net.add("loss", MeanSquaredError{});
  return net;
}

double statistics_of(const Layer& norm, const ProcessGrid& grid, const ReductionFit& sum,
                     StatisticsScope scope = StatisticsScope::global, std::int64_t batch = 0) {
  Machine machine = test::plain_machine(grid.size());
  machine.settings[0].reduction = sum;
  const Plan plan = compile(normalised(norm), {.grid = grid, .batch = batch > 0 ? batch : grid.data, .scope = scope});
  return price(plan, machine).step.statistics_seconds;
}

/// The mean and the squared distances forward, one sum of twice as many backward; the loss's is hidden.
TEST(CostModelStatistics, StatisticsAreSummedTwiceForwardAndOnceBackward) {
  constexpr double t = 1.0 / 1048576;
  const ReductionFit each = test::power_sum(-20);
  const ReductionFit by_bytes = test::power_sum(-20, 1);
  EXPECT_NEAR(statistics_of(BatchNorm{}, {2, 1, 1, 1}, each), 3 * t, 1e-12);
  EXPECT_NEAR(statistics_of(BatchNorm{}, {1, 2, 1, 1}, each), 3 * t, 1e-12);
  EXPECT_NEAR(statistics_of(BatchNorm{}, {2, 1, 1, 1}, by_bytes), (2 * 8 * 8 + 16 * 8) * t, 1e-12);
  EXPECT_NEAR(statistics_of(BatchNorm{}, {}, each), 0, 1e-12);
  // Of each sample and group of channels forward, of each sample and channel backward; of no other group of ranks.
  EXPECT_NEAR(statistics_of(GroupNorm{.groups = 2}, {1, 2, 1, 1}, by_bytes, StatisticsScope::global, 3),
              (2 * 8 * 3 * 2 + 16 * 3 * 8) * t, 1e-12);
  EXPECT_NEAR(statistics_of(GroupNorm{}, {1, 2, 1, 1}, by_bytes), (2 * 8 * 8 + 16 * 8) * t, 1e-12);
  EXPECT_NEAR(statistics_of(GroupNorm{}, {2, 1, 1, 1}, each), 0, 1e-12);
}

TEST(CostModelStatistics, StatisticsAreSummedOverThoseThatShareThem) {
  constexpr double t = 1.0 / 1048576;
  const ReductionFit by_ranks = test::power_sum(-20, 0, 1);  // t for each rank
  const ProcessGrid grid{2, 2, 1, 1};
  EXPECT_NEAR(statistics_of(BatchNorm{}, grid, by_ranks), 3 * 4 * t, 1e-12);
  // A group's own, and the running averages over all.
  EXPECT_NEAR(statistics_of(BatchNorm{}, grid, by_ranks, StatisticsScope::spatial), (3 * 2 + 4) * t, 1e-12);
  EXPECT_NEAR(statistics_of(BatchNorm{}, {2, 1, 1, 1}, by_ranks, StatisticsScope::spatial), 2 * t, 1e-12);
  EXPECT_NEAR(statistics_of(GroupNorm{}, grid, by_ranks), 3 * 2 * t, 1e-12);
}

TEST(CostModelStatistics, SumsWithinANodeAndBetweenNodes) {
  constexpr double t = 1.0 / 1048576;
  const auto statistics = [&](const ProcessGrid& grid, std::int64_t rank, std::int64_t ranks_on_node,
                              StatisticsScope scope = StatisticsScope::global) {
    Machine machine = test::plain_machine(ranks_on_node);
    machine.settings[0].reduction = test::power_sum(-20);
    machine.network_reduction = test::power_sum(-17);
    const Plan plan =
        compile(normalised(GroupNorm{}), {.grid = grid, .rank = rank, .batch = grid.data, .scope = scope});
    return price(plan, machine).step.statistics_seconds / 3;
  };
  EXPECT_NEAR(statistics({1, 4, 1, 1}, 0, 4), t, 1e-12);
  EXPECT_NEAR(statistics({1, 4, 1, 1}, 0, 2), 8 * t, 1e-12);
  EXPECT_NEAR(statistics({3, 2, 1, 1}, 1, 2), t, 1e-12);  // a group within a node
  // Groups of two on nodes of three: the middle one has a rank on each.
  EXPECT_NEAR(statistics({3, 2, 1, 1}, 1, 3), t, 1e-12);
  EXPECT_NEAR(statistics({3, 2, 1, 1}, 2, 3), 8 * t, 1e-12);
  EXPECT_NEAR(statistics({3, 2, 1, 1}, 5, 3), t, 1e-12);
}

}  // namespace
}  // namespace halograd
