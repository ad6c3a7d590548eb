#include "halograd/perf/operation.hpp"

#include "halograd/models/cosmoflow.hpp"
#include "perf/support.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace halograd {
namespace {

Plan compile_small(const ProcessGrid& grid, std::int64_t rank) {
  return compile(test::small_regression(), {.grid = grid, .rank = rank});
}

struct Totals {
  double flops = 0;
  double bytes = 0;
  int count = 0;
};

std::map<std::string, Totals> totals_of(const Plan& plan) {
  std::map<std::string, Totals> totals;
  for (const Step& step : plan.steps) {
    if (!computes(step.kind)) continue;
    const Operation operation = operation_of(plan, step);
    Totals& sum = totals[operation.kind];
    sum.flops += operation.flops;
    sum.bytes += operation.bytes;
    ++sum.count;
    const bool convolves = operation.kind.find("convolution") != std::string::npos;
    EXPECT_EQ(operation.out_channels > 0, convolves) << operation.kind;
    EXPECT_TRUE(operation_key(plan, step).whole.starts_with(operation.kind)) << operation.kind;
  }
  return totals;
}

std::set<std::string> kinds_of(const std::map<std::string, Totals>& totals) {
  std::set<std::string> kinds;
  for (const auto& [kind, sum] : totals) kinds.insert(kind);
  return kinds;
}

TEST(Operation, TotalsOfASmallNetwork) {
  auto totals = totals_of(compile(test::small_regression(), {.batch = 2}));
  EXPECT_EQ(kinds_of(totals),
            (std::set<std::string>{"load_input", "convolution_forward", "convolution_backward_data",
                                   "convolution_backward_weights", "moments", "chain", "chain_backward_sums",
                                   "chain_backward", "flatten", "flatten_backward", "dense", "dense_backward_data",
                                   "dense_backward_weights", "loss", "update"}));
  // c1: 2 to 4 channels on 16 × 8 × 8, c2: 4 to 8 on 8 × 4 × 4.
  constexpr double c1 = 2.0 * 2 * 27 * 2 * 4 * 1024;
  constexpr double c2 = 2.0 * 2 * 27 * 4 * 8 * 128;
  EXPECT_EQ(totals["convolution_forward"].flops, c1 + c2);
  EXPECT_EQ(totals["convolution_backward_weights"].flops, c1 + c2);
  EXPECT_EQ(totals["convolution_backward_data"].flops, c2);  // nobody needs the input's gradient
  EXPECT_EQ(totals["convolution_forward"].bytes, 4.0 * (2 * ((2 + 4) * 1024 + (4 + 8) * 128) + 27 * (2 * 4 + 4 * 8)));
  EXPECT_EQ(totals["convolution_backward_data"].bytes, 4.0 * (2 * (4 + 8) * 128 + 27 * 4 * 8));
  EXPECT_EQ(totals["moments"].bytes, 4.0 * 2 * 4 * 1024);
  EXPECT_EQ(totals["chain"].bytes, 4.0 * 2 * 4 * 128 * (1 + 8));  // eight voxels read for each that is written
  EXPECT_EQ(totals["chain_backward_sums"].bytes, 4.0 * 2 * 4 * 1024 * (1 + 1.0 / 8));
  EXPECT_EQ(totals["chain_backward"].bytes, 4.0 * 2 * 4 * 1024 * (2 + 1.0 / 8));
  EXPECT_EQ(totals["flatten"].bytes, 8.0 * 2 * 8 * 128);
  EXPECT_EQ(totals["flatten_backward"].bytes, 8.0 * 2 * 8 * 128);
  for (const char* const pass : {"dense", "dense_backward_data", "dense_backward_weights"}) {
    EXPECT_EQ(totals[pass].flops, 2.0 * 2 * 1024 * 4) << pass;
    EXPECT_EQ(totals[pass].bytes, 4.0 * 1024 * 4) << pass;
  }
  EXPECT_EQ(totals["loss"].bytes, 8.0 * 2 * 4);
  EXPECT_EQ(totals["update"].bytes, 28.0 * (27 * 8 + 2 * 4 + 27 * 32 + 1024 * 4 + 4));
}

TEST(Operation, TotalsOfCosmoflow) {
  const Network network = cosmoflow({.width = 32});
  auto totals = totals_of(compile(network, {.batch = 2}));
  constexpr double first = 2.0 * 2 * 27 * 4 * 16 * 32768;
  EXPECT_EQ(totals["convolution_forward"].count, 7);
  EXPECT_EQ(totals["convolution_backward_data"].count, 6);
  const double forward = totals["convolution_forward"].flops;
  EXPECT_EQ(forward, 2 * paper_figures(network).convolution_forward_flops);
  EXPECT_EQ(totals["convolution_backward_weights"].flops, forward);
  EXPECT_EQ(totals["convolution_backward_data"].flops, forward - first);
  EXPECT_EQ(totals["update"].bytes, 28.0 * static_cast<double>(network.trainable_parameters()));
}

TEST(Operation, TotalsOfAUnet) {
  const Network network = test::small_unet();
  auto totals = totals_of(compile(network, {}));
  EXPECT_EQ(kinds_of(totals), (std::set<std::string>{"load_input", "convolution_forward", "convolution_backward_data",
                                                     "convolution_backward_weights", "deconvolution_forward",
                                                     "deconvolution_backward_data", "deconvolution_backward_weights",
                                                     "moments", "chain", "chain_backward_sums", "chain_backward",
                                                     "copy", "segmentation_sums", "segmentation_gradient", "update"}));
  // By level: 16³, 8³, 4³, 2³ voxels; 4 channels at first, joins of 96, 48 and 24.
  constexpr double down = 4096 * (4 + 32) + 512 * (64 + 128) + 64 * (256 + 512) + 8 * (1024 + 2048);
  constexpr double up = 64 * (96 * 32 + 1024) + 512 * (48 * 16 + 256) + 4096 * (24 * 8 + 64);
  constexpr double forward = 2.0 * 27 * (down + up) + 2.0 * 4096 * 8 * 3;
  constexpr double deconvolved = 2.0 * 8 * (8 * 64 * 64 + 64 * 32 * 32 + 512 * 16 * 16);
  EXPECT_EQ(totals["convolution_forward"].count, 15);
  EXPECT_EQ(totals["convolution_forward"].flops, forward);
  EXPECT_EQ(totals["convolution_backward_weights"].flops, forward);
  EXPECT_EQ(totals["convolution_backward_data"].flops, forward - 2.0 * 27 * 4096 * 4);
  for (const char* const pass :
       {"deconvolution_forward", "deconvolution_backward_data", "deconvolution_backward_weights"}) {
    EXPECT_EQ(totals[pass].count, 3) << pass;
    EXPECT_EQ(totals[pass].flops, deconvolved) << pass;
  }
  EXPECT_EQ(totals["segmentation_sums"].bytes, 4.0 * 4096 * 3);
  EXPECT_EQ(totals["segmentation_gradient"].bytes, 8.0 * 4096 * 3);
  EXPECT_EQ(totals["update"].bytes, 28.0 * static_cast<double>(network.trainable_parameters()));
}

TEST(Operation, RanksShareTheConvolutions) {
  for (const char* const kind : {"convolution_forward", "convolution_backward_data", "convolution_backward_weights"}) {
    const double whole = totals_of(compile_small({}, 0))[kind].flops;
    double sum = 0;
    for (std::int64_t rank = 0; rank < 4; ++rank) sum += totals_of(compile_small({1, 4, 1, 1}, rank))[kind].flops;
    EXPECT_EQ(sum, whole) << kind;
  }
}

/// What does not compute starts a message and is awaited once, or awaits one.
TEST(Operation, StepsThatDoNotComputeAreStartsAndWaits) {
  std::set<StepKind> messages;
  for (const ProcessGrid& grid : {ProcessGrid{}, ProcessGrid{2, 2, 1, 2}}) {
    for (const Network& network : {test::small_regression(), test::small_unet(), cosmoflow({.width = 32})}) {
      const Plan plan = compile(network, {.grid = grid, .rank = grid.size() - 1, .batch = 2});
      std::vector<int> waits(plan.steps.size(), 0);
      for (const Step& step : plan.steps) {
        if (step.start >= 0) ++waits[static_cast<std::size_t>(step.start)];
      }
      for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const bool starts = waits[i] > 0;
        EXPECT_LE(waits[i], 1) << step_kind_name(step.kind);
        EXPECT_FALSE(starts && step.start >= 0) << step_kind_name(step.kind);
        EXPECT_EQ(computes(step.kind), !starts && step.start < 0) << i << " " << step_kind_name(step.kind);
        if (!computes(step.kind)) messages.insert(step.kind);
      }
    }
  }
  EXPECT_EQ(messages.size(), 12U);
}

}  // namespace
}  // namespace halograd
