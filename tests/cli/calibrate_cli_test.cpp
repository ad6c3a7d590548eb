#include "cli/machine_files.hpp"
#include "cli/program.hpp"
#include "cli/training_runs.hpp"
#include "halograd/device/cuda_device.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace halograd {
namespace {

using nlohmann::json;
using test::expect_failure;
using test::grids_of;
using test::holds;
using test::lassen;
using test::machine_of_two_ranks;
using test::number;
using test::parsed;
using test::ProgramRun;
using test::read_file;
using test::run_halograd;
using test::run_on;
using test::run_ranks;
using test::slow_machine;
using test::TemporaryDirectory;
using test::write_file;
using test::write_machine;

// --- calibrate ----------------------------------------------------------------------------------------------------

TEST(Calibrate, SaysWhatIsWrongBeforeMeasuring) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("machine.json");
  const auto refused = [&](const std::string& more, int exit_code, const std::vector<std::string>& words) {
    const ProgramRun run = run_halograd("calibrate " + more);
    expect_failure(run, exit_code, words);
    EXPECT_FALSE(holds(run.err, "measuring")) << run.err;
    EXPECT_FALSE(std::filesystem::exists(file));
  };
  const std::string start = "cosmoflow --width 32 --out " + file;
  refused("cosmoflow", 2, {"--out is required"});
  refused(start + " --ranks 0", 2, {"--ranks", "not in range 1 to 1048576"});
  refused(start + " --batch 0", 2, {"--batch", "at least 1"});
  refused(start + " --grid 3x1x1", 2, {"nothing to measure", "--grid must name one"});
  refused(start + " --ranks 2 --batch 1 --grid 1x1x1", 2, {"nothing to measure", "groups"});
  refused(start + " --ranks 64 --grid 1x1x64", 2, {"nothing to measure", "can't be split 64 ways"});
  refused("resnet --out " + file, 2, {"unknown model resnet"});
  refused("cosmoflow --width 32 --out /no/such/machine.json", 5, {"there is no directory /no/such"});
  refused("cosmoflow --width 32 --out " + directory.path().string(), 5, {"it is a directory"});
}

TEST(Calibrate, KeepsADamagedFile) {
  const TemporaryDirectory directory;
  write_file(directory / "machine.json", "{\"format\"");
  expect_failure(run_halograd("calibrate cosmoflow --width 32 --out " + directory.file("machine.json")), 2,
                 {"machine.json: no JSON"});
  EXPECT_EQ(read_file(directory / "machine.json"), "{\"format\"");
}

/// Of what was calibrated just now: other programs may slow down either of the two, so that it is tried again.
TEST(Calibrate, PredictsAStepAndMeasuresNothingTwice) {
  double ratio = 0;
  for (int attempt = 0; attempt < 3 && (ratio < 0.5 || ratio > 2); ++attempt) {
    const TemporaryDirectory directory;
    const std::string file = directory.file("machine.json");
    const std::string calibrate = "calibrate cosmoflow --width 32 --batch-norm --batch 2 --out " + file;
    const ProgramRun first = run_ranks(0, calibrate);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const std::string text = read_file(file);
    const json setting = json::parse(text).at("settings").at(0);
    EXPECT_EQ(setting.at("threads"), 1);
    EXPECT_TRUE(holds(first.out, fmt::format("{} operations", setting.at("measured").size()))) << first.out;
    EXPECT_EQ(run_ranks(0, calibrate).exit_code, 0);
    EXPECT_EQ(read_file(file), text);

    const json report = parsed(run_ranks(
        0, "bench step cosmoflow --width 32 --batch-norm --batch 2 --no-floor --device cpu --json --machine " + file));
    const json& predicted = report.at("predicted");
    EXPECT_EQ(number(predicted, "interpolated"), 0);
    EXPECT_NEAR(number(predicted, "memory_bytes") / number(report, "peak_rss_bytes"), 1, 0.15);
    ratio = number(predicted, "step_seconds") / number(report, "step_seconds");
  }
  EXPECT_GT(ratio, 0.5);
  EXPECT_LT(ratio, 2);
}

TEST(Calibrate, MeasuresMessagesBetweenRanks) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("machine.json");
  const std::string arguments = "calibrate cosmoflow --width 32 --grid 2x1x1 --out " + file;
  expect_failure(run_on(2, arguments + " --ranks 1"), 2, {"--ranks 1 is below the 2 ranks started"});
  ASSERT_EQ(run_on(2, arguments).exit_code, 0);
  const json setting = json::parse(read_file(file)).at("settings").at(0);
  EXPECT_EQ(setting.at("ranks_on_node"), 2);
  EXPECT_FALSE(setting.at("link").empty());
  EXPECT_FALSE(setting.at("reduction").empty());
  const json plan = parsed(run_halograd("plan cosmoflow --width 32 --batch 1 --ranks 2 --json --machine " + file));
  EXPECT_GT(number(grids_of(plan, 2).front(), "gradient_seconds"), 0);
}

// --- train --grid auto --------------------------------------------------------------------------------------------

std::string grid_line(const std::filesystem::path& run) {
  const std::string config = read_file(run / "config.toml");
  const std::size_t at = config.find("\ngrid = ") + 1;
  return config.substr(at, config.find(' ', at + 7) - at);
}

TEST(TrainGridAuto, TakesThePlannersBestAndSaysWhy) {
  const TemporaryDirectory directory;
  const std::filesystem::path run = directory / "run";
  const std::string file = write_machine(directory, machine_of_two_ranks());
  const std::string automatic = "--set parallel.device=cpu --grid auto --machine " + file;
  const ProgramRun first = test::train(2, run, automatic + " --max-steps 2");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  // Halos are dear: each group has a sample.
  const json plan = parsed(
      run_halograd("plan " + test::Universes::shared().config().string() + " --ranks 2 --json --machine " + file));
  EXPECT_EQ(grids_of(plan, 2).front().at("grid"), "1x1x1");
  EXPECT_EQ(grid_line(run), "grid = \"1x1x1\"");
  const std::string seconds = fmt::format("{:.4g} s", number(grids_of(plan, 2).front(), "step_seconds"));
  for (const std::string& text : {first.err, read_file(run / "log.txt")}) {
    EXPECT_TRUE(holds(text, "grid 1x1x1 × 2 (" + seconds)) << text;
    EXPECT_TRUE(holds(text, "the fastest step predicted")) << text;
    EXPECT_TRUE(holds(text, "  next 1x1x2 (")) << text;
  }
  // The run goes on, the grid being chosen again.
  const ProgramRun second = test::train(2, run, automatic + " --resume --max-steps 3");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(grid_line(run), "grid = \"1x1x1\"");
  EXPECT_EQ(test::events(run, "step").size(), 3U);
}

TEST(TrainGridAuto, SaysWhatIsMissing) {
  const TemporaryDirectory directory;
  const std::filesystem::path run = directory / "run";
  const std::string file = write_machine(directory, machine_of_two_ranks());
  const auto refused = [&](int ranks, const std::string& more, const std::vector<std::string>& words) {
    expect_failure(test::train(ranks, run, more), 2, words);
    EXPECT_FALSE(std::filesystem::exists(run));
  };
  const std::string on_processors = "--set parallel.device=cpu --grid auto --machine ";
  refused(0, "--grid auto", {"--grid auto needs --machine FILE", "calibrate"});
  refused(0, "--machine " + file, {"--machine is for --grid auto, but --grid is not given"});
  refused(0, "--grid 1x1x1 --machine " + file, {"--machine is for --grid auto, but --grid is 1x1x1"});
  refused(0, "--grid auto --machine /no/such.json", {"/no/such.json: no such machine file"});
  refused(0, on_processors + file, {"slow was not measured with 1 rank(s) on a node of 1 thread(s)"});
  json machine = machine_of_two_ranks();
  machine["node_memory_bytes"] = 1000;
  refused(2, on_processors + write_machine(directory, machine),
          {"no grid fits", "of 2 rank(s) needs the least", "the machine has 500 B"});
}

TEST(TrainGridAuto, TheFirstRankReadsTheMachineFileForAll) {
  const TemporaryDirectory directory;
  const std::string file = write_machine(directory, machine_of_two_ranks());
  const std::string start = test::train_arguments(directory / "run", "--grid auto --machine ");
  expect_failure(test::run_apart(start + "/no/such.json", start + file), 2,
                 {"/no/such.json: no such machine file", "(rank 0)"});
}

// --- A machine file of another device -----------------------------------------------------------------------------

TEST(MachineFileOfAnotherDevice, IsForNoRun) {
  const TemporaryDirectory directory;
  const std::filesystem::path run = directory / "run";
  const std::string processors = write_machine(directory, slow_machine());
  const auto refused = [&](const std::string& file, const std::string& device, const std::string& other) {
    const std::vector<std::string> words{file + " has figures of device " + other,
                                         "but this run computes on " + device + ": take --",
                                         other + ", or a machine file of device " + device + "\n"};
    for (const std::string command : {"step", "scaling"}) {
      const ProgramRun bench = run_ranks(
          0, fmt::format("bench {} cosmoflow --width 32 --steps 1 --device {} --machine {}", command, device, file));
      expect_failure(bench, 2, words);
      EXPECT_TRUE(holds(bench.err, "take --device " + other)) << bench.err;
      EXPECT_EQ(std::ranges::count(bench.err, '\n'), 1) << bench.err;
    }
    const ProgramRun train =
        test::train(0, run, fmt::format("--grid auto --set parallel.device={} --machine {}", device, file));
    expect_failure(train, 2, words);
    EXPECT_TRUE(holds(train.err, "take --set parallel.device=" + other)) << train.err;
    EXPECT_FALSE(std::filesystem::exists(run));
  };
  refused(lassen, "cpu", "cuda");
  refused(processors, "cuda", "cpu");  // said before the GPU is looked for
  expect_failure(run_halograd("bench step cosmoflow --width 32 --device reference --machine " + processors), 2,
                 {"computes on reference: take --device cpu\n"});
}

TEST(MachineFileOfAnotherDevice, IsComparedWithTheOneThatAutoTakes) {
  const TemporaryDirectory directory;
  const bool gpus = !cuda_devices().empty();
  const std::string wrong = gpus ? write_machine(directory, machine_of_two_ranks()) : lassen;
  const ProgramRun run = test::train(2, directory / "run", "--grid auto --machine " + wrong);
  expect_failure(run, 2, {wrong, gpus ? "this run computes on cuda" : "this run computes on cpu"});
}

TEST(MachineFileOfAnotherDevice, IsNotCalibratedInto) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("machine.json");
  std::filesystem::copy_file(lassen, file);
  expect_failure(run_halograd("calibrate cosmoflow --width 32 --out " + file), 2,
                 {file, "figures of device cuda", "calibrate measures processors", "--out"});
  EXPECT_EQ(read_file(file), read_file(lassen));
}

// --- bench scaling and accuracy -----------------------------------------------------------------------------------

TEST(BenchScaling, MeasuresOneAndTwoRanks) {
  const TemporaryDirectory directory;
  json machine = machine_of_two_ranks();
  machine["settings"].push_back(slow_machine().at("settings").at(0));
  const std::string file = write_machine(directory, machine);
  const std::string start = "bench scaling cosmoflow --width 32 --steps 1 --device cpu --machine " + file;
  const json report = parsed(run_on(2, start + " --json --chart " + directory.file("chart.svg")));
  for (const char* kind : {"strong", "weak"}) {
    ASSERT_EQ(report.at(kind).size(), 2U);
    for (int i = 0; i < 2; ++i) {
      const json& point = report.at(kind).at(static_cast<std::size_t>(i));
      const int batch = kind == std::string("weak") ? i + 1 : 1;
      EXPECT_EQ(point.at("ranks"), i + 1);
      EXPECT_EQ(point.at("batch"), batch);
      EXPECT_GT(number(point, "step_seconds"), 0);
      EXPECT_NEAR(number(point, "samples_per_second") * number(point, "step_seconds"), batch, 1e-9);
      EXPECT_GT(number(point.at("predicted"), "step_seconds"), 1);
    }
  }
  EXPECT_EQ(report.at("weak").at(1).at("groups"), 2);  // the planner's best, where halos are dear
  EXPECT_TRUE(holds(read_file(directory / "chart.svg"), "Strong scaling, mini-batch 1"));

  const ProgramRun table = run_on(2, "bench scaling cosmoflow --width 32 --steps 1 --grid 1x1x1,1x2x1");
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(test::lines_that_begin(table.out, "strong "), 2) << table.out;
  EXPECT_EQ(test::lines_that_begin(table.out, "weak "), 2) << table.out;
}

TEST(BenchScaling, SaysWhatIsWrongBeforeMeasuring) {
  const TemporaryDirectory directory;
  const std::string file = write_machine(directory, slow_machine());
  const std::string start = "bench scaling cosmoflow --width 32 --steps 1 --device cpu ";
  const auto refused = [&](int ranks, const std::string& more, int exit_code, const std::vector<std::string>& words) {
    const ProgramRun run = run_ranks(ranks, start + more);
    expect_failure(run, exit_code, words);
    EXPECT_FALSE(holds(run.err, "mini-batch 1, grid")) << run.err;
  };
  refused(0, "--grid 3x1x1", 2, {"--grid names none that divides 1 rank(s)", "one for each of 1, 2, 4"});
  refused(0, "--machine /no/such.json", 2, {"/no/such.json: no such machine file"});
  refused(2, "--chart /no/such/a.svg", 5, {"there is no directory /no/such"});
  json machine = slow_machine();
  machine.erase("network_reduction");
  refused(2, "--machine " + write_machine(directory, machine), 2,
          {"slow was not measured with 2 rank(s) on a node of 1 thread(s): start calibrate so"});
}

TEST(BenchAccuracy, IsATableOfReports) {
  const TemporaryDirectory directory;
  const auto report = [&](const std::string& name, double predicted, double measured) {
    const json text{{"model", "cosmoflow"},
                    {"width", 32},
                    {"batch", 2},
                    {"grid", "1x1x1"},
                    {"ranks", 1},
                    {"step_seconds", measured},
                    {"peak_rss_bytes", 1 << 20},
                    {"predicted", {{"step_seconds", predicted}, {"memory_bytes", 1 << 19}}}};
    write_file(directory / name, text.dump());
    return directory.file(name);
  };
  const std::string files = report("a", 1.1, 1) + " " + report("b", 0.7, 1);
  const std::string chart = directory.file("chart.svg");
  const ProgramRun run = run_halograd("bench accuracy " + files + " --chart " + chart);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* said : {"+10.0 %", "-30.0 %", "step: median error 20.0 %, largest 30.0 %",
                           "memory: median error 50.0 %, largest 50.0 %"}) {
    EXPECT_TRUE(holds(run.out, said)) << said << ": " << run.out;
  }
  EXPECT_TRUE(holds(read_file(chart), "<svg"));
  expect_failure(run_halograd("bench accuracy " + report("c", 0, 0)), 3, {"c: its seconds and bytes must be above 0"});
  expect_failure(run_halograd("bench accuracy " + lassen), 3, {lassen, "no report of `bench step --machine FILE"});
  expect_failure(run_halograd("bench accuracy /no/such"), 3, {"/no/such: no such file"});
  expect_failure(run_halograd("bench accuracy " + files + " --chart /no/such/a"), 5, {"there is no directory"});
}

TEST(BenchStep, RefusesAMachineWithoutThisSetting) {
  const TemporaryDirectory directory;
  const std::string file = write_machine(directory, machine_of_two_ranks());
  expect_failure(run_ranks(0, "bench step cosmoflow --width 32 --device cpu --machine " + file), 2,
                 {"slow was not measured with 1 rank(s) on a node of 1 thread(s)"});
}

}  // namespace
}  // namespace halograd
