#include "halograd/models/cosmoflow.hpp"
#include "halograd/perf/cost_model.hpp"
#include "perf/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace halograd {
namespace {

TEST(CostModelTotals, MemoryIsTheSumOfItsParts) {
  Machine machine = test::plain_machine(4);
  machine.settings[0].baseline_bytes = 1'000'000'000'000;
  const Plan plan = compile(test::small_unet(), {.grid = {1, 2, 2, 1}, .rank = 3, .batch = 2});
  EXPECT_EQ(plan.input_bytes(), 4 * 2 * 9 * 9 * 16);  // with margins, but where the volume ends
  EXPECT_EQ(plan.label_bytes(), 2 * 8 * 8 * 16);
  std::int64_t trainable = 0;
  for (const ParameterSpec& spec : test::small_unet().parameters()) trainable += spec.trainable ? spec.elements() : 0;
  std::int64_t untrained = 0;
  for (const ParameterSpec& spec : test::small_unet().parameters()) untrained += spec.trainable ? 0 : spec.elements();
  std::int64_t messages = 0;
  for (const ExchangePlan& exchange : plan.exchanges) {
    for (const auto& phase : exchange.phases) {
      for (const Transfer& transfer : phase) {
        messages +=
            4 * exchange.samples * exchange.channels * (transfer.send_box.volume() + transfer.receive_box.volume());
      }
    }
  }
  EXPECT_GT(messages, 0);
  EXPECT_GT(untrained, 0);
  const std::int64_t fixed = 1'000'000'000'000 + plan.arena_bytes + messages + 4 * (trainable + untrained);
  const std::int64_t slot = plan.input_bytes() + plan.label_bytes();
  EXPECT_EQ(price(plan, machine).memory_bytes, fixed + 2 * slot + 4 * 3 * trainable);
  EXPECT_EQ(price(plan, machine, {.optimizer_slots = 0, .input_slots = 1}).memory_bytes, fixed + slot + 4 * trainable);
  // Kernels, where they were measured: the forward pass stands for all three, of each convolution.
  std::int64_t held = 0;
  for (const Step& step : plan.steps) {
    if (!computes(step.kind)) continue;
    MeasuredKernel& kernel = machine.settings[0].measured[operation_key(plan, step).whole];
    kernel.held_bytes = step.kind == StepKind::convolution_forward ? 1'000'000 + step.unit : 777;
  }
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::convolution_forward) continue;
    held += machine.settings[0].measured[operation_key(plan, step).whole].held_bytes;
  }
  EXPECT_GE(held, 18'000'000);
  EXPECT_EQ(price(plan, machine).memory_bytes, fixed + 2 * slot + 4 * 3 * trainable + held);
}

TEST(CostModelTotals, LayersAddUpToTheStepLessItsUpdate) {
  Machine machine = test::plain_machine(8);
  machine.settings[0].link = {{.from_bytes = 0, .latency_seconds = 1e-2, .bytes_per_second = 1e5}};
  machine.settings[0].reduction = test::power_sum(-10, 0.5, 1);
  machine.settings[0].rates["update"] = {.overhead_seconds = 1000};
  double gradients = 0;
  for (const double overlap : {1.0, 0.6}) {
    machine.settings[0].overlap = overlap;
    for (const Network& network : {cosmoflow({.width = 32}), test::small_unet(), test::small_regression()}) {
      const Plan plan = compile(network, {.grid = {2, 2, 2, 1}, .rank = 5, .batch = 2});
      const PlanCost cost = price(plan, machine);
      EXPECT_GT(cost.step.halo_seconds, 0);
      EXPECT_GT(cost.step.statistics_seconds, 0);
      gradients += cost.step.gradient_seconds;
      const StepCost& step = cost.step;
      EXPECT_DOUBLE_EQ(step.seconds(), step.convolution_seconds + step.other_seconds + step.halo_seconds +
                                           step.statistics_seconds + step.gradient_seconds + step.data_seconds);
      const auto updates = std::ranges::count(plan.steps, StepKind::update, &Step::kind);
      double layers = 0;
      std::set<std::string> names;
      for (const LayerPlacement& placement : plan.placements) names.insert(placement.name);
      for (const LayerCost& of : cost.layers) {
        layers += of.forward_seconds + of.backward_seconds;
        // A layer of the network, each once; besides, what a bucket's start keeps from computing.
        EXPECT_TRUE(names.erase(of.name) == 1 || (overlap < 1 && of.name.starts_with("bucket "))) << of.name;
      }
      double waited = cost.step.gradient_seconds + cost.step.data_seconds;
      if (overlap < 1) {
        for (const LayerCost& of : cost.layers) waited -= of.name.starts_with("bucket ") ? of.backward_seconds : 0;
      }
      EXPECT_NEAR(layers, cost.step.seconds() - 1000.0 * static_cast<double>(updates) - waited, 1e-6);
    }
  }
  EXPECT_GT(gradients, 0);
}

}  // namespace
}  // namespace halograd
