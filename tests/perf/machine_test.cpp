#include "halograd/perf/machine.hpp"

#include "halograd/core/error.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace halograd {
namespace {

using test::message_of;

Machine with_settings(const std::vector<std::pair<std::int64_t, std::int64_t>>& settings) {
  Machine machine{.name = "cluster"};
  for (const auto& [ranks, threads] : settings) {
    machine.settings.push_back({.ranks_on_node = ranks, .threads = threads});
  }
  return machine;
}

std::pair<std::int64_t, std::int64_t> chosen(const Machine& machine, std::int64_t ranks,
                                             std::optional<std::int64_t> threads = {}) {
  const MachineSetting& setting = machine.setting_for(ranks, {.threads = threads});
  return {setting.ranks_on_node, setting.threads};
}

TEST(Machine, TheSettingWithTheMostRanksThatARunFills) {
  const Machine machine = with_settings({{1, 1}, {1, 8}, {2, 1}, {2, 4}, {4, 2}});
  EXPECT_EQ(chosen(machine, 1), std::pair(1L, 8L));
  EXPECT_EQ(chosen(machine, 2), std::pair(2L, 4L));
  EXPECT_EQ(chosen(machine, 3), std::pair(2L, 4L));
  EXPECT_EQ(chosen(machine, 4), std::pair(4L, 2L));
  EXPECT_EQ(chosen(machine, 2048), std::pair(4L, 2L));
}

TEST(Machine, TheSettingWithTheThreadsAskedFor) {
  const Machine machine = with_settings({{1, 1}, {1, 8}, {2, 1}, {2, 4}, {4, 2}});
  EXPECT_EQ(chosen(machine, 1, 1), std::pair(1L, 1L));
  EXPECT_EQ(chosen(machine, 4, 1), std::pair(2L, 1L));
  EXPECT_EQ(chosen(machine, 4, 8), std::pair(1L, 8L));
  EXPECT_EQ(message_of<UsageError>([&] { (void)machine.setting_for(4, {.threads = 3}); }),
            "cluster was not measured with up to 4 rank(s) on a node of 3 thread(s): start calibrate so");
}

TEST(Machine, NoSettingForSoFewRanks) {
  const Machine machine = with_settings({{4, 1}, {8, 1}});
  EXPECT_EQ(chosen(machine, 4), std::pair(4L, 1L));
  EXPECT_EQ(message_of<UsageError>([&] { (void)machine.setting_for(3); }),
            "cluster was not measured with up to 3 rank(s) on a node: start calibrate so");
}

TEST(Machine, SettingsNeedNoOrder) {
  const Machine machine = with_settings({{4, 2}, {2, 4}, {1, 8}, {2, 1}});
  EXPECT_EQ(chosen(machine, 3), std::pair(2L, 4L));
  EXPECT_EQ(chosen(machine, 9), std::pair(4L, 2L));
}

TEST(Machine, MemoryOfARankIsItsDevicesOrItsShareOfTheNodes) {
  Machine machine = with_settings({{1, 1}, {4, 1}});
  machine.node_memory_bytes = 1003;
  EXPECT_EQ(machine.memory_of_rank(machine.settings[0]), 1003);
  EXPECT_EQ(machine.memory_of_rank(machine.settings[1]), 250);
  machine.rank_memory_bytes = 80;
  EXPECT_EQ(machine.memory_of_rank(machine.settings[0]), 80);
  EXPECT_EQ(machine.memory_of_rank(machine.settings[1]), 80);
}

TEST(MachineSetting, TheRateOfTheLongestNameThatAKindBeginsWith) {
  MachineSetting setting;
  int tile = 0;
  for (const char* const name :
       {"chain", "chain_backward", "chain_backward_sums", "convolution", "default", "moments_of"}) {
    setting.rates[name].channel_tile = ++tile;
  }
  EXPECT_EQ(setting.rate("chain").channel_tile, 1);
  EXPECT_EQ(setting.rate("chain_forward").channel_tile, 1);
  EXPECT_EQ(setting.rate("chain_backward").channel_tile, 2);
  EXPECT_EQ(setting.rate("chain_backward_faces").channel_tile, 2);
  EXPECT_EQ(setting.rate("chain_backward_sums").channel_tile, 3);
  EXPECT_EQ(setting.rate("convolution_backward_weights").channel_tile, 4);
  EXPECT_EQ(setting.rate("deconvolution_forward").channel_tile, 5);  // does not begin with convolution
  EXPECT_EQ(setting.rate("moments").channel_tile, 5);                // a beginning of the name is not enough
  setting.rates.erase("default");
  setting.ranks_on_node = 2;
  EXPECT_EQ(message_of<UsageError>([&] { (void)setting.rate("update"); }),
            "the machine has no rate for update with 2 ranks on a node: calibrate it for this network, or add a rate "
            "\"default\"");
}

TEST(Machine, SecondsOfAMessageAtAndAroundBorders) {
  const LinkRanges link{{.from_bytes = 0, .latency_seconds = 1, .bytes_per_second = 10},
                        {.from_bytes = 100, .latency_seconds = 3, .bytes_per_second = 50},
                        {.from_bytes = 1000, .latency_seconds = 5, .bytes_per_second = 100}};
  EXPECT_EQ(message_seconds(link, 0), 0);
  EXPECT_EQ(message_seconds(link, 1), 1.1);
  EXPECT_EQ(message_seconds(link, 99), 1 + 9.9);
  EXPECT_EQ(message_seconds(link, 100), 3 + 2);
  EXPECT_EQ(message_seconds(link, 999), 3 + 19.98);
  EXPECT_EQ(message_seconds(link, 1000), 5 + 10);
  EXPECT_EQ(message_seconds(link, 1e9), 5 + 1e7);
  EXPECT_EQ(message_seconds({}, 0), 0);
  EXPECT_EQ(message_of<UsageError>([] { message_seconds({}, 1); }),
            "the machine file says nothing of messages between these ranks: start calibrate with as many on a node, or "
            "over two nodes");
}

TEST(Machine, SecondsOfASumAtAndAroundBorders) {
  const ReductionFit fit{{.from_bytes = 0, .constant = -10, .bytes_exponent = 0, .ranks_exponent = 1},
                         {.from_bytes = 1024, .constant = -20, .bytes_exponent = 1, .ranks_exponent = 0.5}};
  EXPECT_EQ(reduction_seconds(fit, 0, 8), 0);
  EXPECT_EQ(reduction_seconds(fit, 1024, 1), 0);
  EXPECT_DOUBLE_EQ(reduction_seconds(fit, 1, 2), 2.0 / 1024);
  EXPECT_DOUBLE_EQ(reduction_seconds(fit, 1023, 8), 8.0 / 1024);
  EXPECT_DOUBLE_EQ(reduction_seconds(fit, 1024, 4), 1024 * 2.0 / 1048576);
  EXPECT_DOUBLE_EQ(reduction_seconds(fit, 4096, 16), 4096 * 4.0 / 1048576);
  EXPECT_EQ(reduction_seconds({}, 100, 1), 0);
  EXPECT_EQ(
      message_of<UsageError>([] { reduction_seconds({}, 1, 6); }),
      "the machine file says nothing of sums over 6 ranks: start calibrate with as many on a node, or over two nodes");
}

}  // namespace
}  // namespace halograd
