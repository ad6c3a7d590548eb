#include "cli/machine_files.hpp"
#include "cli/program.hpp"
#include "cli/training_runs.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace halograd {
namespace {

using nlohmann::json;
using test::expect_failure;
using test::grids_of;
using test::holds;
using test::lassen;
using test::number;
using test::parsed;
using test::ProgramRun;
using test::read_file;
using test::run_halograd;
using test::slow_machine;
using test::TemporaryDirectory;
using test::write_file;
using test::write_machine;

TEST(Plan, OfAHandWrittenMachineIsWhatCanBeComputed) {
  const TemporaryDirectory directory;
  const std::string file = write_machine(directory, slow_machine());
  const json summary = parsed(run_halograd("summary cosmoflow --width 32 --device cpu --json"));
  const json plan = parsed(run_halograd("plan cosmoflow --width 32 --batch 1 --ranks 1 --json --machine " + file));
  const json grids = grids_of(plan, 1);
  ASSERT_EQ(grids.size(), 1U);
  const json& only = grids.front();
  EXPECT_EQ(only.at("grid"), "1x1x1");
  EXPECT_TRUE(only.at("best").get<bool>());
  // Seven convolutions: those of weights are seven too, of inputs six, as the first has no gradient to pass on.
  EXPECT_NEAR(number(only, "convolution_seconds"), number(summary, "conv_forward_flops") / 1e9 + 13 * 0.001, 1e-9);
  const double others = number(only, "other_seconds") / 0.0625;
  EXPECT_EQ(others, std::round(others));
  EXPECT_GT(others, 10);
  EXPECT_NEAR(number(only, "data_seconds"), 0.25, 1e-9);
  EXPECT_EQ(number(only, "halo_seconds") + number(only, "gradient_seconds") + number(only, "statistics_seconds"), 0);
  EXPECT_NEAR(number(only, "step_seconds"), number(only, "convolution_seconds") + number(only, "other_seconds") + 0.25,
              1e-9);
  // Its activations, a second input slot, weights with gradients and Adam's state, and the process itself.
  EXPECT_EQ(number(only, "memory_bytes"), number(summary, "arena_bytes") + number(summary, "next_input_bytes") +
                                              number(summary, "parameter_bytes") + 1e6);
}

TEST(Plan, PricesMessagesAndSums) {
  const TemporaryDirectory directory;
  const std::string file = write_machine(directory, slow_machine());
  const std::string arguments = "plan cosmoflow --width 32 --batch 1 --ranks 2 --grid 2x1x1 --json --machine " + file;
  const json summary = parsed(run_halograd("summary cosmoflow --width 32 --grid 2x1x1 --device cpu --json"));
  const json one = grids_of(parsed(run_halograd(arguments)), 2).at(0);
  EXPECT_NEAR(number(one, "gradient_seconds") + number(one, "statistics_seconds"), 2 * number(summary, "sums_per_step"),
              1e-9);
  EXPECT_NEAR(number(one, "statistics_seconds"), 2, 1e-9);  // the loss
  // Where a convolution strides, a rank may receive a halo and send none: that takes a message's time as well.
  const double messages = number(one, "halo_seconds") / 0.5;
  EXPECT_GE(messages, number(summary, "halo_messages_per_step"));
  EXPECT_LE(messages, 2 * number(summary, "halo_messages_per_step"));
  EXPECT_NEAR(messages, std::round(messages), 1e-6);
  EXPECT_EQ(number(one, "memory_bytes"), number(summary, "arena_bytes") + number(summary, "next_input_bytes") +
                                             number(summary, "parameter_bytes") +
                                             number(summary, "message_buffer_bytes") + 1e6);

  const json faster = parsed(run_halograd(arguments + " --change /network/0/latency_seconds=0.125"));
  EXPECT_NEAR(number(grids_of(faster, 2).at(0), "halo_seconds"), number(one, "halo_seconds") / 4, 1e-9);
  const json hidden = parsed(run_halograd(arguments + " --change /settings/0/overlap=1"));
  EXPECT_LT(number(grids_of(hidden, 2).at(0), "step_seconds"), number(one, "step_seconds"));
  EXPECT_GT(number(grids_of(hidden, 2).at(0), "hidden_seconds"), 0);
}

TEST(Plan, TakesThePrecisionAndTheMachinesDevice) {
  const TemporaryDirectory directory;
  const std::string network = "cosmoflow --width 32 --batch 1 --json --precision ";
  const std::string on = " --ranks 1 --machine ";
  const std::string file = write_machine(directory, slow_machine());
  const json plan = parsed(run_halograd("plan " + network + "bf16" + on + file));
  EXPECT_EQ(plan.at("precision"), "bf16");
  EXPECT_EQ(plan.at("device"), "cpu");
  const json summary = parsed(run_halograd("summary " + network + "bf16 --device cpu"));
  EXPECT_EQ(
      number(grids_of(plan, 1).front(), "memory_bytes"),
      number(summary, "arena_bytes") + number(summary, "next_input_bytes") + number(summary, "parameter_bytes") + 1e6);
  expect_failure(run_halograd("plan " + network + "tf32" + on + file), 2, {"tf32 is a precision of GPUs"});
  EXPECT_EQ(parsed(run_halograd("plan " + network + "tf32" + on + lassen)).at("device"), "cuda");
}

TEST(Plan, PartsAddUpAndTheBestIsTheFastestThatFits) {
  const json plan =
      parsed(run_halograd("plan cosmoflow --width 128 --batch-norm --batch 8 --ranks 1,2,4,8 --json --change "
                          "/rank_memory_bytes=3000000000 --machine " +
                          lassen));
  int too_large = 0;
  for (const json& each : plan.at("plans")) {
    const json& grids = each.at("grids");
    double fastest = std::numeric_limits<double>::infinity();
    for (const json& grid : grids) {
      ASSERT_FALSE(grid.contains("refused")) << grid;
      double sum = 0;
      for (const char* part : {"convolution_seconds", "other_seconds", "halo_seconds", "statistics_seconds",
                               "gradient_seconds", "data_seconds"}) {
        EXPECT_GE(number(grid, part), 0) << part;
        sum += number(grid, part);
      }
      EXPECT_NEAR(sum, number(grid, "step_seconds"), 1e-9 * sum);
      EXPECT_NEAR(8 / number(grid, "step_seconds"), number(grid, "samples_per_second"), 1e-6);
      EXPECT_EQ(grid.at("fits").get<bool>(), number(grid, "memory_bytes") <= 3e9);
      if (grid.at("fits").get<bool>()) fastest = std::min(fastest, number(grid, "step_seconds"));
      too_large += grid.at("fits").get<bool>() ? 0 : 1;
    }
    const auto best = std::ranges::count_if(grids, [](const json& grid) { return grid.at("best").get<bool>(); });
    EXPECT_EQ(best, std::isfinite(fastest) ? 1 : 0);
    if (best == 0) continue;
    EXPECT_TRUE(grids.front().at("best").get<bool>());
    EXPECT_EQ(number(grids.front(), "step_seconds"), fastest);
  }
  EXPECT_GT(too_large, 0);
  EXPECT_TRUE(grids_of(plan, 8).front().at("best").get<bool>());
}

TEST(Plan, SaysThePapersNumberOfGpus) {
  const std::string arguments = "plan cosmoflow --width 512 --batch 1 --ranks 8 --json --machine " + lassen;
  EXPECT_EQ(parsed(run_halograd(arguments + " --batch-norm")).at("paper_ranks_per_sample"), 8);
  EXPECT_EQ(parsed(run_halograd(arguments)).at("paper_ranks_per_sample"), 4);
}

TEST(Plan, IsATableForPeople) {
  const ProgramRun run = run_halograd("plan cosmoflow --width 64 --batch 4 --ranks 4,2,2 --machine " + lassen);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(test::lines_that_begin(run.out, "2 rank(s):"), 1) << run.out;
  EXPECT_EQ(test::lines_that_begin(run.out, "4 rank(s):"), 1) << run.out;
  EXPECT_EQ(test::lines_that_begin(run.out, "* best: "), 2) << run.out;
  EXPECT_LT(run.out.find("2 rank(s):"), run.out.find("4 rank(s):"));
  EXPECT_TRUE(holds(run.out, "1.00 times as fast as 2 rank(s), efficiency 100 %")) << run.out;
}

TEST(Plan, NamesTheNearestGridThatWouldDo) {
  const std::string arguments = "plan cosmoflow --width 512 --batch 4 --machine " + lassen + " --ranks ";
  const ProgramRun run = run_halograd(arguments + "1,2");
  expect_failure(run, 2,
                 {"no grid fits: 1x1x1 × 2 of 2 rank(s) needs the least, 33.1 GiB", "the machine has 16.0 GiB",
                  "grid 1x1x2 × 4 of 8 rank(s) would do, or a smaller mini-batch"});
  EXPECT_TRUE(grids_of(parsed(run_halograd(arguments + "8 --grid 1x1x2 --json")), 8).at(0).at("fits").get<bool>());
  EXPECT_EQ(run_halograd(arguments + "4").exit_code, 2);  // half as many would not
  expect_failure(
      run_halograd("plan cosmoflow --batch 1 --ranks 1 --change /rank_memory_bytes=1000 --machine " + lassen), 2,
      {"the machine has 0.98 KiB; more ranks would not make it small enough\n"});
}

TEST(Plan, SaysWhatIsWrongWithTheCommandLine) {
  const std::string start = "plan cosmoflow --width 32 --batch 2 --machine " + lassen;
  const auto refused = [&](const std::string& more, const std::vector<std::string>& words) {
    expect_failure(run_halograd(start + more), 2, words);
  };
  refused("", {"--ranks is required"});
  for (const char* ranks : {"0", "-4", "4x", "1048577", "99999999999999999999"}) {
    refused(std::string(" --ranks ") + ranks, {"--ranks", ranks, "not in range 1 to 1048576"});
  }
  for (const char* grid : {"abc", "0x1x1", "2x1", "-2x1x1"}) {
    refused(std::string(" --ranks 4 --grid=") + grid, {grid, "must be DEPTHxHEIGHTxWIDTH, as 2x1x1"});
  }
  for (const char* grid : {"3x1x1", "1x1x1"}) {  // doesn't divide; four groups of two samples
    refused(std::string(" --ranks 4 --grid ") + grid, {"--grid must name one whose parts divide", "mini-batch of 2"});
  }
  refused(" --ranks 4 --threads 7", {"4 rank(s)", "7 thread(s)"});
  refused(" --ranks 64 --grid 64x1x1", {"can't be split 64 ways", "at most 32"});
  for (const char* batch : {"0", "-3"}) {
    expect_failure(run_halograd("plan cosmoflow --ranks 1 --machine " + lassen + " --batch " + batch), 2,
                   {"--batch: train.batch_size = ", "at least 1"});
  }
  expect_failure(run_halograd("plan resnet --ranks 1 --machine " + lassen), 2, {"unknown model resnet", "unet3d"});
  expect_failure(run_halograd("plan cosmoflow --width 100 --ranks 1 --machine " + lassen), 2, {"multiple of 8"});
}

TEST(Plan, SaysWhatIsWrongWithAChange) {
  const std::string start = "plan cosmoflow --width 32 --ranks 1 --machine " + lassen + " --change ";
  for (const char* change : {"nothing", "/x=1", "=1", "/settings/9/overlap=1", "settings/0/overlap=1", "/name=3",
                             "/settings/0/overlap=", "/settings/0/overlap=NaN", "/settings=1"}) {
    expect_failure(run_halograd(start + change), 2, {lassen, change, "it must be /path/to/figure=number"});
  }
  expect_failure(run_halograd(start + "/settings/0/overlap=2"), 2, {"settings[0].overlap is 2; it must be 0 to 1"});
  expect_failure(run_halograd(start + "/settings/0/rates/convolution_forward/flops_per_second=1e-300"), 2,
                 {"a step would take forever"});
  expect_failure(run_halograd(start + "/settings/0/baseline_bytes=18446744073709551615"), 2,
                 {"settings[0].baseline_bytes is 18446744073709551615; it must be at most"});
}

TEST(Plan, SaysWhatIsWrongWithAMachineFile) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    write_file(directory / "machine.json", text);
    expect_failure(run_halograd("plan cosmoflow --width 32 --ranks 1 --machine " + directory.file("machine.json")), 2,
                   words);
  };
  const std::string whole = slow_machine().dump();
  refused("", {"machine.json: no JSON"});
  refused(whole.substr(0, whole.size() / 2), {"machine.json: no JSON"});
  refused("[]", {"machine.json: the file must be an object"});
  refused("{}", {"machine.json: format is missing"});
  json machine = slow_machine();
  machine["settings"][0]["rates"].erase("default");
  refused(machine.dump(), {"no rate for", "calibrate it for this network, or add a rate \"default\""});
  machine["settings"] = json::array();
  refused(machine.dump(), {"settings is empty"});
  for (const std::string& file : {directory.path().string(), std::string("/no/such.json")}) {
    expect_failure(run_halograd("plan cosmoflow --width 32 --ranks 1 --machine " + file), 2,
                   {file, "no such machine file, or not readable", "halograd calibrate --out"});
  }
}

TEST(Plan, DrawsAChartOrLeavesWhatIsThere) {
  const TemporaryDirectory directory;
  const std::string chart = directory.file("chart.svg");
  const std::string start = "plan cosmoflow --width 32 --ranks 1,2 --machine " + lassen + " --chart ";
  write_file(chart, "kept");
  std::filesystem::create_directory(chart + ".partial");  // where it is written first
  expect_failure(run_halograd(start + chart), 5, {chart});
  EXPECT_EQ(read_file(chart), "kept");
  std::filesystem::remove(chart + ".partial");
  EXPECT_EQ(run_halograd(start + chart).exit_code, 0);
  EXPECT_TRUE(holds(read_file(chart), "<svg"));
  EXPECT_TRUE(holds(read_file(chart), "Weak scaling"));
  EXPECT_TRUE(test::leftovers(directory.path()).empty());
  expect_failure(run_halograd(start + directory.path().string()), 5, {"can't be written: it is a directory"});
  expect_failure(run_halograd(start + "/no/such/a.svg"), 5, {"/no/such/a.svg", "there is no directory /no/such"});
  expect_failure(run_halograd(start + "/dev/full"), 5, {"/dev/full", "No space left"});
}

}  // namespace
}  // namespace halograd
