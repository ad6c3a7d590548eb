#include "halograd/models/cosmoflow.hpp"
#include "halograd/models/unet3d.hpp"
#include "halograd/perf/cost_model.hpp"
#include "halograd/perf/machine.hpp"
#include "halograd/perf/operation.hpp"
#include "halograd/plan/compiler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace halograd {
namespace {

std::vector<std::filesystem::path> shipped_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(HALOGRAD_MACHINES_DIRECTORY)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

Machine shipped(const std::string& name) {
  return load_machine(std::filesystem::path(HALOGRAD_MACHINES_DIRECTORY) / name);
}

/// CosmoFlow and the 3D U-Net, both with batch norm, whole and in eight parts, at opposite corners of the volume.
std::vector<Plan> plans(Mode mode = Mode::train) {
  std::vector<Plan> plans;
  for (const Network& network : {cosmoflow({.width = 128}), unet3d({.width = 64})}) {
    const ProcessGrid parts{1, 2, 2, 2};
    plans.push_back(compile(network, {.mode = mode}));
    plans.push_back(compile(network, {.grid = parts, .rank = 0, .mode = mode}));
    plans.push_back(compile(network, {.grid = parts, .rank = 7, .mode = mode}));
  }
  return plans;
}

std::set<std::string> kinds(Mode mode) {
  std::set<std::string> kinds;
  for (const Plan& plan : plans(mode)) {
    for (const Step& step : plan.steps) {
      if (computes(step.kind)) kinds.insert(operation_of(plan, step).kind);
    }
  }
  return kinds;
}

/// By a name of its own: what only "default" covers was forgotten.
bool has_rate(const MachineSetting& setting, const std::string& kind) {
  return std::ranges::any_of(setting.rates, [&](const auto& entry) { return kind.starts_with(entry.first); });
}

TEST(ShippedMachines, LoadAndSayAllThatASettingNeeds) {
  const auto files = shipped_files();
  ASSERT_GE(files.size(), 2U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    const Machine machine = load_machine(file);
    EXPECT_FALSE(machine.network.empty());
    EXPECT_FALSE(machine.network_reduction.empty());
    EXPECT_EQ(machine.setting_for(1).ranks_on_node, 1);
    std::int64_t before = 0;
    for (const MachineSetting& setting : machine.settings) {
      EXPECT_GT(setting.ranks_on_node, before);
      before = setting.ranks_on_node;
      EXPECT_EQ(setting.threads, 1);
      EXPECT_EQ(setting.link.empty(), setting.ranks_on_node == 1);
      EXPECT_EQ(setting.reduction.empty(), setting.ranks_on_node == 1);
      EXPECT_TRUE(setting.measured.empty());  // from data sheets, not from runs
    }
    EXPECT_EQ(machine.setting_for(512).ranks_on_node, before);
  }
}

TEST(ShippedMachines, HaveARateForEveryKindOfOperation) {
  std::set<std::string> all = kinds(Mode::train);
  all.merge(kinds(Mode::evaluate));
  // Both networks must bring what the files are checked for.
  for (const char* kind : {"convolution_backward_weights", "deconvolution_forward", "moments", "chain_backward",
                           "running_statistics", "copy", "flatten", "dense", "loss", "segmentation_sums", "update"}) {
    EXPECT_TRUE(all.contains(kind)) << kind;
  }
  for (const auto& file : shipped_files()) {
    SCOPED_TRACE(file.filename().string());
    for (const MachineSetting& setting : load_machine(file).settings) {
      for (const std::string& kind : all) EXPECT_TRUE(has_rate(setting, kind)) << kind;
    }
  }
}

TEST(ShippedMachines, PriceAStep) {
  for (const auto& file : shipped_files()) {
    SCOPED_TRACE(file.filename().string());
    const Machine machine = load_machine(file);
    for (const Plan& plan : plans()) {
      const PlanCost cost = price(plan, machine);
      EXPECT_TRUE(std::isfinite(cost.step.seconds()));
      EXPECT_GT(cost.step.convolution_seconds, 0);
      EXPECT_GT(cost.step.other_seconds, 0);
      EXPECT_GT(cost.step.seconds(), 1e-4);  // a hundred launches
      EXPECT_LT(cost.step.seconds(), 1);
      EXPECT_NEAR(cost.step.interpolated, 1, 1e-12);
      const bool alone = plan.grid.size() == 1;
      EXPECT_EQ(cost.step.halo_seconds > 0, !alone);
      EXPECT_EQ(cost.step.statistics_seconds > 0, !alone);
      EXPECT_GT(cost.memory_bytes, machine.setting_for(plan.grid.size()).baseline_bytes + plan.arena_bytes);
    }
  }
}

/// No rate is above what the data sheet gives one GPU, nor so low that a digit must be missing.
void expect_rates_below(const Machine& machine, double peak_flops, double peak_bytes) {
  for (const MachineSetting& setting : machine.settings) {
    for (const auto& [kind, rate] : setting.rates) {
      SCOPED_TRACE(kind);
      EXPECT_GT(rate.overhead_seconds, 1e-6);
      EXPECT_LT(rate.overhead_seconds, 1e-4);
      EXPECT_LT(rate.bytes_per_second, peak_bytes);
      if (kind == "load_input") continue;  // from the host
      EXPECT_GT(rate.bytes_per_second, peak_bytes / 3);
      const bool multiplies = kind.find("convolution") != std::string::npos || kind == "dense";
      EXPECT_EQ(rate.flops_per_second > 0, multiplies);
      EXPECT_LT(rate.flops_per_second, peak_flops);
      EXPECT_GT(rate.flops_per_second, multiplies ? peak_flops / 5 : -1);
    }
  }
}

/// Ranges are fitted apart: where one ends and the next begins they must roughly agree.
void expect_ranges_meet(const ReductionFit& fit, std::initializer_list<std::int64_t> counts) {
  for (std::size_t i = 1; i < fit.size(); ++i) {
    for (const std::int64_t ranks : counts) {
      const double at = fit[i].from_bytes;
      const double jump = reduction_seconds(fit, at, ranks) / reduction_seconds(fit, at - 1, ranks);
      EXPECT_GT(jump, 1 / 1.5) << at << " bytes over " << ranks;
      EXPECT_LT(jump, 1.5) << at << " bytes over " << ranks;
    }
  }
}

constexpr double message = 16 << 20;  // bytes
constexpr double gradients = 38e6;    // bytes: all of CosmoFlow's

TEST(ShippedMachines, LassenIsOfTheRightOrder) {
  const Machine lassen = shipped("lassen-v100.json");
  EXPECT_EQ(lassen.node_memory_bytes, 4 * (std::int64_t{16} << 30));
  expect_rates_below(lassen, 15.7e12, 900e9);

  const double between_nodes = message_seconds(lassen.network, message);
  EXPECT_GT(between_nodes, 1e-3);
  EXPECT_LT(between_nodes, 10e-3);
  const double on_a_socket = message_seconds(lassen.setting_for(2).link, message);
  const double on_a_node = message_seconds(lassen.setting_for(4).link, message);
  EXPECT_GT(on_a_socket, message / 75e9);  // three NVLink2
  EXPECT_GT(on_a_node, on_a_socket);
  EXPECT_GT(between_nodes, on_a_node);

  const double sum = reduction_seconds(lassen.network_reduction, gradients, 512);
  EXPECT_GT(sum, 5e-3);
  EXPECT_LT(sum, 100e-3);
  EXPECT_GT(sum, reduction_seconds(lassen.setting_for(4).reduction, gradients, 4));
  // One double over all of 2,048: some ten hops through the tree and back of a few microseconds each.
  const double number = reduction_seconds(lassen.network_reduction, 8, 2048);
  EXPECT_GT(number, 30e-6);
  EXPECT_LT(number, 300e-6);
  expect_ranges_meet(lassen.network_reduction, {8, 128, 2048});
  expect_ranges_meet(lassen.setting_for(4).reduction, {4});
}

TEST(ShippedMachines, H200IsOfTheRightOrder) {
  const Machine h200 = shipped("h200.json");
  EXPECT_EQ(h200.node_memory_bytes, 8 * std::int64_t{141'000'000'000});
  expect_rates_below(h200, 66.9e12, 4.8e12);

  const double between_nodes = message_seconds(h200.network, message);
  EXPECT_GT(between_nodes, message / 50e9);  // 400 Gb/s
  EXPECT_LT(between_nodes, 1e-3);
  const double on_a_node = message_seconds(h200.setting_for(8).link, message);
  EXPECT_GT(on_a_node, message / 450e9);
  EXPECT_LT(on_a_node, between_nodes);

  const double sum = reduction_seconds(h200.network_reduction, gradients, 512);
  EXPECT_GT(sum, 0.1e-3);
  EXPECT_LT(sum, 5e-3);
  EXPECT_GT(sum, reduction_seconds(h200.setting_for(8).reduction, gradients, 8));
  expect_ranges_meet(h200.network_reduction, {16, 128, 2048});
  expect_ranges_meet(h200.setting_for(8).reduction, {8});
}

}  // namespace
}  // namespace halograd
