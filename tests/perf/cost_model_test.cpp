#include "halograd/perf/cost_model.hpp"

#include "halograd/core/error.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "perf/support.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace halograd {
namespace {

const ProcessGrid three_slabs{1, 3, 1, 1};

/// Of test::two_convolutions() on three slabs of 8 × 8 × 8, the middle one.
Plan middle_slab(std::int64_t bucket_bytes = 4 << 20) {
  return compile(test::two_convolutions(), {.grid = three_slabs, .rank = 1, .bucket_bytes = bucket_bytes});
}

// What its steps take on the plain machine, in seconds.
constexpr double c1_seconds = 2e-6 * 2 * 4 * 512;
constexpr double c2_seconds = 2e-6 * 27 * 4 * 8 * 512;
constexpr double shell_seconds = 2 * 4e-6 * 2 * 4 * 64;  // both slabs: each value is read, and written
constexpr double interior_seconds = 4e-6 * 2 * 4 * 6 * 64;
constexpr double loss_seconds = 8e-6 * 8 * 512;
constexpr double relu_back_seconds = 4e-6 * 3 * 4 * 512;  // y, its gradient and the output's
constexpr double update_seconds = 28e-6 * (2 * 4 + 27 * 4 * 8);
constexpr double forward_seconds = c1_seconds + shell_seconds + interior_seconds + c2_seconds + loss_seconds;
constexpr double backward_seconds = 2 * c2_seconds + relu_back_seconds + c1_seconds;
constexpr double computing_seconds = forward_seconds + backward_seconds + update_seconds;
constexpr double load_seconds = 6e-6 * 2 * 512;  // by another thread, a step ahead

const LayerCost& layer(const PlanCost& cost, const std::string& name) {
  static const LayerCost none{.name = "none", .forward_seconds = NAN, .backward_seconds = NAN};
  const auto at = std::ranges::find(cost.layers, name, &LayerCost::name);
  return at == cost.layers.end() ? none : *at;
}

TEST(CostModel, WithoutMessageCostsTheStepIsTheSumOfItsOperations) {
  const PlanCost cost = price(middle_slab(), test::plain_machine(3));
  EXPECT_NEAR(cost.step.convolution_seconds, 2 * c1_seconds + 3 * c2_seconds, 1e-12);
  EXPECT_NEAR(cost.step.seconds(), computing_seconds, 1e-12);
  EXPECT_LT(cost.step.halo_seconds + cost.step.statistics_seconds + cost.step.gradient_seconds, 1e-12);
  EXPECT_LT(cost.step.hidden_seconds, 1e-12);
  EXPECT_DOUBLE_EQ(cost.step.interpolated, 1);
  EXPECT_NEAR(layer(cost, "c1").forward_seconds, c1_seconds, 1e-12);
  EXPECT_NEAR(layer(cost, "c1").backward_seconds, c1_seconds, 1e-12);
  EXPECT_NEAR(layer(cost, "relu").forward_seconds, shell_seconds + interior_seconds, 1e-12);
  EXPECT_NEAR(layer(cost, "relu").backward_seconds, relu_back_seconds, 1e-12);
  EXPECT_NEAR(layer(cost, "c2").forward_seconds, c2_seconds, 1e-12);
  EXPECT_NEAR(layer(cost, "c2").backward_seconds, 2 * c2_seconds, 1e-12);
  EXPECT_NEAR(layer(cost, "loss").forward_seconds, loss_seconds, 1e-12);
}

TEST(CostModel, AnyNetworkWithoutMessageCostsIsTheSumOfItsOperations) {
  const Machine machine = test::plain_machine(4);
  for (const Network& network : {cosmoflow({.width = 32}), test::small_unet()}) {
    const Plan plan = compile(network, {.grid = {1, 2, 2, 1}, .rank = 3, .batch = 2});
    double sum = 0;
    double convolutions = 0;
    for (const Step& step : plan.steps) {
      if (!computes(step.kind) || step.kind == StepKind::load_input) continue;
      const bool convolves = operation_of(plan, step).out_channels > 0;
      (convolves ? convolutions : sum) += 1e-6 * (convolves ? step.flops : step.bytes);
    }
    const StepCost cost = price(plan, machine).step;
    EXPECT_NEAR(cost.convolution_seconds, convolutions, 1e-9 * convolutions);
    EXPECT_NEAR(cost.seconds(), sum + convolutions, 1e-9 * convolutions);
  }
}

/// A layer split in what needs no halo and what does, as the paper has it; halos of two sides in each dimension.
struct PaperLayer {
  double main_seconds;
  double halo_seconds;        ///< computing what needs the halo
  std::vector<double> sides;  ///< SR of a message, by dimension

  [[nodiscard]] Plan plan() const {
    Plan plan{.grid = {1, 3, 3, 3}, .rank = 13, .batch = 1};
    plan.buffers.push_back({.name = "input", .external = true});
    plan.input.tile.buffer = 0;
    plan.placements.push_back({.name = "conv"});
    for (const double seconds : {main_seconds, halo_seconds}) {
      plan.convolutions.push_back(
          {.name = "conv", .desc = Conv3dDesc{.out_channels = 1}, .forward_flops = seconds * 1e6});
    }
    ExchangePlan exchange{.name = "conv halo", .samples = 1, .channels = 1, .phases = {}};
    constexpr int steps[3] = {9, 3, 1};  // to the neighbouring rank, by dimension
    for (std::size_t d = 0; d < sides.size(); ++d) {
      const Box box = Box::whole({std::llround(sides[d] * 1e6 / 4), 1, 1});
      exchange.phases.emplace_back();
      for (const int peer : {13 - steps[d], 13 + steps[d]}) {
        exchange.phases.back().push_back(
            {.peer = peer, .send_box = box, .send = {}, .receive_box = box, .receive = {}});
      }
    }
    plan.exchanges.push_back(exchange);
    plan.steps = {{.kind = StepKind::exchange_start},
                  {.kind = StepKind::convolution_forward, .unit = 0, .flops = main_seconds * 1e6},
                  {.kind = StepKind::exchange_wait, .start = 0},
                  {.kind = StepKind::convolution_forward, .unit = 1, .flops = halo_seconds * 1e6}};
    return plan;
  }
};

/// Four bytes are a message of 4 µs.
Machine machine_with_links(std::int64_t ranks_on_node = 27) {
  Machine machine = test::plain_machine(ranks_on_node);
  machine.settings[0].link = {{.from_bytes = 0, .latency_seconds = 0, .bytes_per_second = 1e6}};
  return machine;
}

/// FP = max{Comp(main), Σ_d 2·SR(halo_d)} + Comp(halo): section III-C of the paper.
TEST(CostModel, ForwardTimeOfALayerIsThePapers) {
  const Machine machine = machine_with_links();
  const std::vector<PaperLayer> layers{{8, 2, {1, 0.5, 0.25}}, {3, 2, {1, 0.5, 0.25}}, {3.5, 1, {1, 0.5, 0.25}},
                                       {0.5, 4, {2}},          {6, 0.5, {}},           {1, 1, {0, 2, 0}}};
  for (const PaperLayer& of : layers) {
    double messages = 0;
    for (const double side : of.sides) messages += 2 * side;
    const double expected = std::max(of.main_seconds, messages) + of.halo_seconds;
    const PlanCost cost = price(of.plan(), machine);
    EXPECT_DOUBLE_EQ(cost.step.seconds(), expected);
    EXPECT_DOUBLE_EQ(cost.step.convolution_seconds, of.main_seconds + of.halo_seconds);
    EXPECT_DOUBLE_EQ(cost.step.halo_seconds, std::max(0.0, messages - of.main_seconds));
    EXPECT_DOUBLE_EQ(cost.step.hidden_seconds, std::min(messages, of.main_seconds));
    ASSERT_EQ(cost.layers.size(), 1U);
    EXPECT_EQ(cost.layers[0].name, "conv");
    EXPECT_DOUBLE_EQ(cost.layers[0].forward_seconds, expected);
    EXPECT_EQ(cost.layers[0].backward_seconds, 0);
  }
}

TEST(CostModel, WhatDoesNotOverlapPassesAtOnce) {
  Machine machine = machine_with_links();
  const Plan plan = PaperLayer{3, 1, {2}}.plan();  // four seconds of messages
  const auto cost_with = [&](double overlap) {
    machine.settings[0].overlap = overlap;
    return price(plan, machine).step;
  };
  EXPECT_DOUBLE_EQ(cost_with(0).seconds(), 3 + 4 + 1);
  EXPECT_DOUBLE_EQ(cost_with(0).halo_seconds, 4);
  EXPECT_DOUBLE_EQ(cost_with(0).hidden_seconds, 0);
  // 3 s pass, then 3 s of computing, of which the first hides the message's last.
  EXPECT_DOUBLE_EQ(cost_with(0.25).seconds(), 3 + 3 + 1);
  EXPECT_DOUBLE_EQ(cost_with(0.25).hidden_seconds, 1);
  // 1 s passes; the message's other 3 s just fit.
  EXPECT_DOUBLE_EQ(cost_with(0.75).seconds(), 1 + 3 + 1);
  // Half a second passes, and half a second is waited.
  EXPECT_DOUBLE_EQ(cost_with(0.875).seconds(), 0.5 + 3 + 0.5 + 1);
  EXPECT_DOUBLE_EQ(cost_with(0.875).halo_seconds, 1);
  EXPECT_DOUBLE_EQ(cost_with(1).seconds(), 4 + 1);
}

TEST(CostModel, HalosOfACompiledNetwork) {
  for (const double side : {interior_seconds / 8, interior_seconds, 3 * c2_seconds}) {
    Machine machine = test::plain_machine(3);
    machine.settings[0].link = test::constant_link(side);
    const PlanCost cost = price(middle_slab(), machine);
    // Forward, the interior of c2's input hides its halo; backward, c2's gradient of weights what goes back.
    const double forward_wait = std::max(0.0, 2 * side - interior_seconds);
    const double backward_wait = std::max(0.0, 2 * side - c2_seconds);
    EXPECT_NEAR(layer(cost, "relu").forward_seconds + layer(cost, "c2").forward_seconds,
                shell_seconds + std::max(interior_seconds, 2 * side) + c2_seconds, 1e-12);
    EXPECT_NEAR(layer(cost, "c2").backward_seconds, c2_seconds + std::max(c2_seconds, 2 * side), 1e-12);
    EXPECT_NEAR(cost.step.halo_seconds, forward_wait + backward_wait, 1e-12);
    EXPECT_NEAR(cost.step.hidden_seconds, 4 * side - forward_wait - backward_wait, 1e-9);
    EXPECT_NEAR(cost.step.seconds(), computing_seconds + forward_wait + backward_wait, 1e-12);
    // The ranks at the ends have one neighbour.
    const PlanCost end = price(compile(test::two_convolutions(), {.grid = three_slabs}), machine);
    EXPECT_NEAR(end.step.halo_seconds, std::max(0.0, side - 4e-6 * 2 * 4 * 7 * 64) + std::max(0.0, side - c2_seconds),
                1e-12);
  }
}

TEST(CostModel, MessagesBetweenNodesUseTheNetwork) {
  const double near = 1;
  const double far = 16;
  const auto halo = [&](const ProcessGrid& grid, std::int64_t rank, std::int64_t ranks_on_node) {
    Machine machine = test::plain_machine(ranks_on_node);
    machine.settings[0].link = test::constant_link(near);
    machine.settings[0].overlap = 0;  // so that every message counts in full
    machine.network = test::constant_link(far);
    const Plan plan = compile(test::two_convolutions(), {.grid = grid, .rank = rank, .batch = grid.data});
    return price(plan, machine).step.halo_seconds / 2;  // there and back
  };
  EXPECT_NEAR(halo(three_slabs, 1, 3), 2 * near, 1e-9);
  EXPECT_NEAR(halo(three_slabs, 0, 2), near, 1e-9);
  EXPECT_NEAR(halo(three_slabs, 1, 2), near + far, 1e-9);  // one neighbour on the node
  EXPECT_NEAR(halo(three_slabs, 2, 2), far, 1e-9);
  EXPECT_NEAR(halo(three_slabs, 1, 1), 2 * far, 1e-9);
  // Groups of two on nodes of three: ranks 2 and 3 are a group, on two nodes.
  const ProcessGrid groups{3, 2, 1, 1};
  EXPECT_NEAR(halo(groups, 0, 3), near, 1e-9);
  EXPECT_NEAR(halo(groups, 2, 3), far, 1e-9);
  EXPECT_NEAR(halo(groups, 3, 3), far, 1e-9);
  EXPECT_NEAR(halo(groups, 5, 3), near, 1e-9);
}

TEST(CostModel, GradientSumsHideBehindTheBackwardPass) {
  // 2^-20 s a byte: 3456 bytes of c2's weights, 32 of c1's.
  constexpr double c2_sum = 3456.0 / 1048576;
  constexpr double c1_sum = 32.0 / 1048576;
  Machine machine = test::plain_machine(3);
  machine.settings[0].reduction = test::power_sum(-20, 1);
  // A bucket each: c2's travels while the rest of the backward pass is computed.
  const StepCost two = price(middle_slab(1), machine).step;
  EXPECT_LT(c2_sum, relu_back_seconds + c1_seconds);
  EXPECT_NEAR(two.gradient_seconds, std::max(0.0, c1_sum - 28e-6 * 864), 1e-12);
  // One bucket is complete only when all is computed.
  const StepCost one = price(middle_slab(), machine).step;
  EXPECT_NEAR(one.gradient_seconds, c1_sum + c2_sum, 1e-12);
  EXPECT_NEAR(one.seconds(), computing_seconds + c1_sum + c2_sum, 1e-12);
  EXPECT_NEAR(one.statistics_seconds, 0, 1e-12);
  // Sums that take longer than the backward pass follow one another: Σ FP + max{Σ (BD + BF), Σ AR}.
  machine.settings[0].reduction = test::power_sum(-8, 1);
  const double slow_c2 = 4096 * c2_sum;
  const double slow_c1 = 4096 * c1_sum;
  const double rest = relu_back_seconds + c1_seconds;  // behind the start of c2's sum
  const double c2_update = 28e-6 * 864;
  const StepCost slow = price(middle_slab(1), machine).step;
  const double loss_sum = 8.0 / 256;  // hidden
  EXPECT_LT(loss_sum, c2_seconds);
  EXPECT_NEAR(slow.gradient_seconds, (slow_c2 - rest) + std::max(0.0, slow_c1 - c2_update), 1e-9);
  EXPECT_NEAR(slow.seconds(),
              forward_seconds + 2 * c2_seconds + slow_c2 + std::max(slow_c1, c2_update) + update_seconds - c2_update,
              1e-9);
  EXPECT_NEAR(slow.hidden_seconds, slow_c2 + slow_c1 + loss_sum - slow.gradient_seconds, 1e-9);
  // Without overlap nothing is hidden.
  machine.settings[0].overlap = 0;
  const PlanCost open = price(middle_slab(1), machine);
  EXPECT_NEAR(open.step.gradient_seconds, slow_c2 + slow_c1, 1e-9);
  EXPECT_NEAR(open.step.statistics_seconds, loss_sum, 1e-9);
  EXPECT_NEAR(open.step.hidden_seconds, 0, 1e-9);
  EXPECT_NEAR(open.step.seconds(), computing_seconds + slow_c2 + slow_c1 + loss_sum + load_seconds, 1e-9);
}

TEST(CostModel, AMeasuredKernelTakesPrecedence) {
  const Plan plan = middle_slab();
  Machine machine = test::plain_machine(3);
  std::string update;
  std::string c2;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::update) update = operation_key(plan, step).whole;
    if (step.kind == StepKind::convolution_backward_data) c2 = operation_key(plan, step).whole;
  }
  machine.settings[0].measured[update] = {.seconds = 3};
  machine.settings[0].measured[c2] = {.seconds = 5};
  machine.settings[0].measured["convolution_forward of another shape"] = {.seconds = 1000};
  const StepCost cost = price(plan, machine).step;
  const double rest = computing_seconds - update_seconds - c2_seconds;
  EXPECT_NEAR(cost.seconds(), rest + 8, 1e-9);
  EXPECT_NEAR(cost.convolution_seconds, 2 * c1_seconds + 2 * c2_seconds + 5, 1e-9);
  EXPECT_NEAR(cost.interpolated, (rest + load_seconds) / (rest + load_seconds + 8), 1e-12);
  for (const std::string& key : test::keys_of(plan)) machine.settings[0].measured[key] = {.seconds = 0.5};
  EXPECT_EQ(price(plan, machine).step.interpolated, 0);
  const auto others = static_cast<double>(test::keys_of(plan).size()) - 1;  // but for the load, which is hidden
  EXPECT_NEAR(price(plan, machine).step.seconds(), 0.5 * others, 1e-9);
}

TEST(CostModel, AnUnmeasuredShapeIsPricedByItsRelatives) {
  const Plan plan = middle_slab();
  OperationKey key;
  double flops = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::convolution_forward || key.whole.empty() == false) continue;
    key = operation_key(plan, step);
    flops = step.flops;
  }
  const auto priced = [&](std::initializer_list<std::pair<double, double>> relatives) {
    Machine machine = test::plain_machine(3);
    for (const auto& [share, seconds] : relatives) {
      machine.settings[0].measured[fmt::format("{} n{}", key.family, share)] = {.seconds = seconds,
                                                                                .flops = share * flops};
    }
    return price(plan, machine).step;
  };
  const double other = priced({}).convolution_seconds - c1_seconds;
  EXPECT_NEAR(priced({{0.5, 3}}).convolution_seconds - other, 6, 1e-9);  // in proportion
  EXPECT_NEAR(priced({{4, 3}}).convolution_seconds - other, 0.75, 1e-9);
  EXPECT_NEAR(priced({{0.5, 3}, {2, 12}}).convolution_seconds - other, 6, 1e-9);   // between two, on logarithms
  EXPECT_NEAR(priced({{0.25, 1}, {4, 16}}).convolution_seconds - other, 4, 1e-9);  // halfway
  EXPECT_NEAR(priced({{0.125, 50}, {0.25, 1}, {4, 16}, {8, 50}}).convolution_seconds - other, 4, 1e-9);  // the nearest
  EXPECT_GT(priced({{0.5, 3}}).interpolated, 0.3);                                                       // and says so
}

TEST(CostModel, RatesOfOverheadFlopsAndBytes) {
  const Plan plan = PaperLayer{2, 0, {}}.plan();  // two convolutions: 2e6 flops, and none
  const auto convolved = [&](const KernelRate& rate) {
    Machine machine = test::plain_machine(27);
    machine.settings[0].rates = {{"convolution_forward", rate}};
    return price(plan, machine).step.convolution_seconds;
  };
  EXPECT_DOUBLE_EQ(convolved({.overhead_seconds = 0.25, .flops_per_second = 1e6}), 2 + 2 * 0.25);
  EXPECT_DOUBLE_EQ(convolved({.overhead_seconds = 0.25}), 2 * 0.25);
  EXPECT_DOUBLE_EQ(convolved({.flops_per_second = 4e6, .channel_tile = 32}), 32 * 0.5);  // of one channel
  // Memory or arithmetic, whichever takes longer.
  const Plan chain = compile(test::two_convolutions(), {});
  double flops = 0;
  double bytes = 0;
  for (const Step& step : chain.steps) {
    if (step.kind != StepKind::convolution_forward || step.unit != 0) continue;
    flops = step.flops;
    bytes = step.bytes;
  }
  Machine machine = test::plain_machine(1);
  for (const double bytes_per_second : {bytes / 3, bytes / 5}) {
    machine.settings[0].rates["convolution_forward"] = {.flops_per_second = flops / 4,
                                                        .bytes_per_second = bytes_per_second};
    EXPECT_DOUBLE_EQ(layer(price(chain, machine), "c1").forward_seconds, std::max(4.0, bytes / bytes_per_second));
  }
  // 4 and 8 output channels as 6 and 12.
  machine.settings[0].rates["convolution_forward"] = {.flops_per_second = 1e6, .channel_tile = 6};
  EXPECT_NEAR(layer(price(chain, machine), "c1").forward_seconds, 1.5 * 3 * c1_seconds, 1e-12);
  EXPECT_NEAR(layer(price(chain, machine), "c2").forward_seconds, 1.5 * 3 * c2_seconds, 1e-12);
}

/// Of the load, what does not overlap passes, and what takes longer than all else is waited for.
TEST(CostModel, DataIsLoadedAhead) {
  const Plan plan = middle_slab();
  Machine machine = test::plain_machine(3);
  const auto data_with = [&](double load, double overlap, int slots = 2) {
    machine.settings[0].overlap = overlap;
    machine.settings[0].measured[test::keys_of(plan).front()] = {.seconds = load};
    const StepCost cost = price(plan, machine, {.input_slots = slots}).step;
    EXPECT_NEAR(cost.seconds() - cost.data_seconds, computing_seconds, 1e-9);
    return cost.data_seconds;
  };
  EXPECT_NEAR(data_with(0.9 * computing_seconds, 1), 0, 1e-9);
  EXPECT_NEAR(data_with(1.5 * computing_seconds, 1), 0.5 * computing_seconds, 1e-9);
  EXPECT_NEAR(data_with(1.5 * computing_seconds, 0.75), 0.375 * computing_seconds + 0.125 * computing_seconds, 1e-9);
  EXPECT_NEAR(data_with(0.5, 0.75), 0.125, 1e-9);
  EXPECT_NEAR(data_with(0.5, 0), 0.5, 1e-9);
  EXPECT_EQ(data_with(1.5 * computing_seconds, 0, 1), 0);  // nobody loads
}

TEST(CostModel, RefusesWhatTheMachineDoesNotKnow) {
  const auto refusal = [](auto&& forget) {
    Machine machine = test::plain_machine(2);
    forget(machine);
    return test::message_of<UsageError>([&] { price(middle_slab(), machine); });
  };
  EXPECT_EQ(refusal([](Machine&) {}), "");
  EXPECT_EQ(refusal([](Machine& machine) { machine.network.clear(); }),
            "the machine file says nothing of messages between these ranks: start calibrate with as many on a node, or "
            "over two nodes");
  EXPECT_EQ(refusal([](Machine& machine) { machine.settings[0].link.clear(); }),
            "the machine file says nothing of messages between these ranks: start calibrate with as many on a node, or "
            "over two nodes");
  EXPECT_EQ(
      refusal([](Machine& machine) { machine.network_reduction.clear(); }),
      "the machine file says nothing of sums over 3 ranks: start calibrate with as many on a node, or over two nodes");
  EXPECT_EQ(refusal([](Machine& machine) { machine.settings[0].reduction.clear(); }), "");  // no sum stays on a node
  EXPECT_NE(refusal([](Machine& machine) { machine.settings[0].rates.erase("default"); }), "");
  // One rank alone needs neither.
  Machine machine = test::plain_machine(1);
  machine.network.clear();
  machine.network_reduction.clear();
  machine.settings[0].link.clear();
  machine.settings[0].reduction.clear();
  EXPECT_GT(price(compile(test::two_convolutions(), {}), machine).step.seconds(), 0);
}

}  // namespace
}  // namespace halograd
