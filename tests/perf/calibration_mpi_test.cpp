#include "halograd/perf/calibration.hpp"

#include "halograd/core/error.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "halograd/perf/cost_model.hpp"
#include "perf/support.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace halograd {
namespace {

constexpr int runs = 3;
const CalibrationOptions quick{.least_runs = runs, .least_seconds = 0, .most_runs = runs};

/// The plans of as many ranks, split in depth.
std::vector<Plan> plans_of(const Network& network, int ranks) {
  const ProcessGrid grid{1, ranks, 1, 1};
  std::vector<Plan> plans;
  for (int rank = 0; rank < ranks; ++rank) {
    plans.push_back(compile(network, {.grid = grid, .rank = rank, .batch = 2}));
  }
  return plans;
}

std::string text_of(const MachineSetting& setting) {
  std::string text;
  for (const auto& [key, kernel] : setting.measured) {
    text += fmt::format("{} {} {} {} {}\n", key, kernel.seconds, kernel.flops, kernel.bytes, kernel.held_bytes);
  }
  return text;
}

std::set<std::string> all_keys(const std::vector<Plan>& plans) {
  std::set<std::string> keys;
  for (const Plan& plan : plans) {
    for (const std::string& key : test::keys_of(plan)) keys.insert(key);
  }
  return keys;
}

std::set<std::string> known_keys(const MachineSetting& setting) {
  std::set<std::string> keys;
  for (const auto& [key, kernel] : setting.measured) keys.insert(key);
  return keys;
}

TEST(Calibration, MeasuresEveryOperationOfEveryRank) {
  const Communicator world = Communicator::world();
  for (const Network& network : {test::small_regression(), test::small_unet()}) {
    const std::vector<Plan> plans = plans_of(network, world.size());
    MachineSetting setting;
    EXPECT_TRUE(measure_plans(world, plans, quick, setting));
    EXPECT_EQ(known_keys(setting), all_keys(plans));
    for (const Plan& plan : plans) {
      for (const Step& step : plan.steps) {
        if (!computes(step.kind)) continue;
        const auto found = setting.measured.find(operation_key(plan, step).whole);
        if (found == setting.measured.end()) continue;  // reported above
        const Operation operation = operation_of(plan, step);
        EXPECT_EQ(found->second.flops, operation.flops) << found->first;
        EXPECT_EQ(found->second.bytes, operation.bytes) << found->first;
        EXPECT_GE(found->second.seconds, 0) << found->first;
        EXPECT_LT(found->second.seconds, 10) << found->first;
        EXPECT_EQ(found->second.held_bytes > 0, step.kind == StepKind::convolution_forward) << found->first;
      }
    }
    // The same on all ranks, to the last bit.
    const std::string text = text_of(setting);
    for (const std::string& other : world.all_gather(text)) EXPECT_EQ(other, text);
    // All is known now.
    EXPECT_FALSE(measure_plans(world, plans, quick, setting));
    EXPECT_EQ(text_of(setting), text);
  }
}

TEST(Calibration, WhatWasMeasuredStays) {
  const Communicator world = Communicator::world();
  const std::vector<Plan> plans = plans_of(test::small_regression(), world.size());
  const std::string known = test::keys_of(plans.back()).back();
  MachineSetting setting;
  setting.measured[known] = {.seconds = 123, .flops = 4, .bytes = 5, .held_bytes = 6};
  setting.measured["something else"] = {.seconds = 7};
  EXPECT_TRUE(measure_plans(world, plans, quick, setting));
  EXPECT_EQ(setting.measured.size(), all_keys(plans).size() + 1);
  EXPECT_EQ(setting.measured[known].seconds, 123);
  EXPECT_EQ(setting.measured[known].held_bytes, 6);
  EXPECT_EQ(setting.measured["something else"].seconds, 7);
}

/// Even where only one rank lacks something, all run.
TEST(Calibration, RanksDecideTogether) {
  const Communicator world = Communicator::world();
  const std::vector<Plan> plans = plans_of(test::small_regression(), world.size());
  MachineSetting setting;
  for (const std::string& key : all_keys(plans)) setting.measured[key] = {.seconds = 1};
  EXPECT_FALSE(measure_plans(world, plans, quick, setting));
  const std::string lacking = test::keys_of(plans.back())[1];
  setting.measured.erase(lacking);
  EXPECT_TRUE(measure_plans(world, plans, quick, setting));
  EXPECT_TRUE(setting.measured.contains(lacking));
  EXPECT_EQ(setting.measured.size(), all_keys(plans).size());
}

/// Plans of fewer ranks than there are: all take the first.
TEST(Calibration, WithFewerPlansAllRanksRunTheFirst) {
  const Communicator world = Communicator::world();
  for (const int number : {1, 2}) {
    if (number >= world.size() && number > 1) continue;
    const std::vector<Plan> plans = plans_of(test::small_regression(), number);
    MachineSetting setting;
    EXPECT_TRUE(measure_plans(world, plans, quick, setting));
    EXPECT_EQ(known_keys(setting), all_keys({plans.front()})) << number;
  }
}

TEST(Calibration, APlanThatDoesNotFitFailsOnAllRanks) {
  const Communicator world = Communicator::world();
  std::vector<Plan> plans = plans_of(test::small_regression(), world.size());
  plans.back() = compile(cosmoflow({.width = 4096}), {});
  MachineSetting setting;
  EXPECT_THROW(measure_plans(world, plans, quick, setting), ResourceError);
  EXPECT_TRUE(setting.measured.empty());
}

TEST(Calibration, ARateForEachKind) {
  const Communicator world = Communicator::world();
  const std::vector<Plan> plans = plans_of(test::small_unet(), world.size());
  MachineSetting setting{.ranks_on_node = world.size()};
  measure_plans(world, plans, quick, setting);
  fit_rates(setting);
  std::set<std::string> kinds;
  for (const Plan& plan : plans) {
    for (const Step& step : plan.steps) {
      // The input is loaded meanwhile: that step may take no time.
      if (computes(step.kind) && step.kind != StepKind::load_input) kinds.insert(operation_of(plan, step).kind);
    }
  }
  for (const std::string& kind : kinds) {
    ASSERT_TRUE(setting.rates.contains(kind)) << kind;
    const KernelRate& rate = setting.rates[kind];
    EXPECT_TRUE(std::isfinite(rate.overhead_seconds) && rate.overhead_seconds >= 0) << kind;
    EXPECT_TRUE(std::isfinite(rate.flops_per_second) && rate.flops_per_second >= 0) << kind;
    EXPECT_TRUE(std::isfinite(rate.bytes_per_second) && rate.bytes_per_second >= 0) << kind;
    EXPECT_GT(rate.overhead_seconds + rate.flops_per_second + rate.bytes_per_second, 0) << kind;
    EXPECT_EQ(setting.rates.count("default"), 0U);
  }
  // What was measured prices these plans wholly; rates alone, wholly by interpolation.
  Machine machine{.name = "here", .node_memory_bytes = 1, .settings = {setting}};
  machine.settings[0].link = test::constant_link(0);
  machine.settings[0].reduction = test::power_sum(test::no_time);
  EXPECT_EQ(price(plans[0], machine).step.interpolated, 0);
  machine.settings[0].measured.clear();
  EXPECT_GT(price(plans[0], machine).step.interpolated, 0.999);
}

TEST(Calibration, RatesFollowTheLawOfTheirKind) {
  MachineSetting setting;
  for (int i = 1; i <= 8; ++i) {
    const double flops = 1e9 * i;
    const double bytes = 1e6 * i * i;
    setting.measured[fmt::format("convolution_forward n{}", i)] = {.seconds = 1e-3 + flops / 2e11, .flops = flops};
    setting.measured[fmt::format("update {}", i)] = {.seconds = bytes / 5e9, .bytes = bytes};
  }
  setting.measured["load_input"] = {.seconds = 0};  // shorter than the clock can tell
  setting.rates["update"] = {.overhead_seconds = 99};
  setting.rates["default"] = {.overhead_seconds = 98};
  fit_rates(setting);
  EXPECT_EQ(setting.rates.size(), 3U);
  const KernelRate& convolution = setting.rates["convolution_forward"];
  EXPECT_NEAR(convolution.overhead_seconds, 1e-3, 1e-5);
  EXPECT_NEAR(convolution.flops_per_second, 2e11, 2e9);
  EXPECT_EQ(convolution.bytes_per_second, 0);
  EXPECT_NEAR(setting.rates["update"].bytes_per_second, 5e9, 5e7);
  EXPECT_EQ(setting.rates["update"].flops_per_second, 0);
  EXPECT_LT(setting.rates["update"].overhead_seconds, 1e-5);
  EXPECT_EQ(setting.rates["default"].overhead_seconds, 98);  // not measured: stays
}

}  // namespace
}  // namespace halograd
