#include "halograd/exec/rehearsal.hpp"

#include "halograd/core/error.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "halograd/models/unet3d.hpp"
#include "halograd/plan/compiler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace halograd {
namespace {

struct Case {
  const char* name;
  Network network;
  ProcessGrid grid;
  std::int64_t rank;
  StatisticsScope scope = StatisticsScope::global;
};

std::vector<Case> cases() {
  const Network regression = cosmoflow({.width = 32});
  const Network segmentation = unet3d({.width = 16, .base_channels = 4});
  return {{"CosmoFlow alone", regression, {}, 0},
          {"CosmoFlow, rank 3 of 2x2x1", regression, {1, 2, 2, 1}, 3},
          {"U-Net alone", segmentation, {}, 0},
          {"U-Net, rank 3 of 2x2x1", segmentation, {1, 2, 2, 1}, 3},
          {"statistics of each group", segmentation, {2, 2, 1, 1}, 3, StatisticsScope::spatial},
          {"statistics of each sample",
           unet3d({.width = 16, .base_channels = 4, .norm = UnetNorm::instance}),
           {1, 2, 2, 1},
           3}};
}

bool travels(StepKind kind) {
  return kind == StepKind::exchange_start || kind == StepKind::exchange_wait || kind == StepKind::bucket_start ||
         kind == StepKind::bucket_wait;
}

/// Statistics and losses sum what is this rank's own.
bool sums(StepKind kind) {
  return kind == StepKind::statistics_start || kind == StepKind::statistics_wait || kind == StepKind::sums_start ||
         kind == StepKind::sums_wait || kind == StepKind::loss_sum_start || kind == StepKind::loss_sum_wait ||
         kind == StepKind::segmentation_start || kind == StepKind::segmentation_wait;
}

TEST(Rehearsal, TimesEveryStepThatComputesAndNoMessage) {
  for (const Case& of : cases()) {
    const Plan plan =
        compile(of.network, {.grid = of.grid, .rank = of.rank, .batch = 2 * of.grid.data, .scope = of.scope});
    Rehearsal rehearsal(plan, Backend::cpu, {});
    int messages = 0;
    for (int run = 0; run < 2; ++run) {
      const std::vector<double> seconds = rehearsal.run();
      ASSERT_EQ(seconds.size(), plan.steps.size()) << of.name;
      double sum = 0;
      messages = 0;
      for (std::size_t i = 0; i < seconds.size(); ++i) {
        const StepKind kind = plan.steps[i].kind;
        EXPECT_TRUE(std::isfinite(seconds[i])) << of.name << ": " << step_kind_name(kind);
        EXPECT_GE(seconds[i], 0) << of.name << ": " << step_kind_name(kind);
        EXPECT_LT(seconds[i], 60) << of.name << ": " << step_kind_name(kind);
        sum += seconds[i];
        if (travels(kind)) {
          ++messages;
          EXPECT_EQ(seconds[i], 0) << of.name << ": " << step_kind_name(kind);
        } else if (!sums(kind) && kind != StepKind::load_input) {
          EXPECT_GT(seconds[i], 0) << of.name << ": " << step_kind_name(kind) << " " << step_name(plan, plan.steps[i]);
        }
      }
      EXPECT_GT(sum, 0) << of.name;
    }
    EXPECT_EQ(messages > 0, of.grid.size() > 1) << of.name;
  }
}

TEST(Rehearsal, ConvolutionsHoldWhatTheirKernelsHold) {
  for (const Case& of : cases()) {
    const Plan plan = compile(of.network, {.grid = of.grid, .rank = of.rank, .batch = of.grid.data});
    const std::vector<std::int64_t> held = Rehearsal(plan, Backend::cpu, {}).held_bytes();
    ASSERT_EQ(held.size(), plan.convolutions.size()) << of.name;
    for (std::size_t i = 0; i < held.size(); ++i) {
      const ConvolutionUnit& unit = plan.convolutions[i];
      const auto* const desc = std::get_if<Conv3dDesc>(&unit.desc);
      const auto kernel = desc != nullptr ? make_conv3d(Backend::cpu, *desc)
                                          : make_deconv3d(Backend::cpu, std::get<Deconv3dDesc>(unit.desc));
      EXPECT_EQ(held[i], kernel->held_bytes()) << of.name << ": " << unit.name;
    }
  }
}

TEST(Rehearsal, OnlyPlansThatTrain) {
  for (const Mode mode : {Mode::predict, Mode::evaluate}) {
    const Plan plan = compile(cosmoflow({.width = 32}), {.mode = mode});
    EXPECT_THROW(Rehearsal(plan, Backend::cpu, {}), UsageError);
  }
}

TEST(Rehearsal, RefusesWhatTheNodeCannotHold) {
  const Plan plan = compile(cosmoflow({.width = 4096}), {});  // some 7 TB
  EXPECT_THROW(Rehearsal(plan, Backend::cpu, {}), ResourceError);
}

}  // namespace
}  // namespace halograd
