#include "cli/program.hpp"
#include "data/case_files.hpp"
#include "halograd/device/cuda_device.hpp"
#include "halograd/train/checkpoint.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace halograd {
namespace {

using test::lines_that_begin;
using test::ProgramRun;
using test::run_apart;
using test::run_halograd;
using test::run_on;
using test::TemporaryDirectory;
using testing::TestWithParam;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_one_line(const ProgramRun& run) {
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

// --- What is wrong ------------------------------------------------------------------------------------------------

struct Wrong {
  const char* arguments;
  int exit_code;
  std::vector<std::string> words;
};
void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.arguments;
}

class WrongCommandLine : public TestWithParam<Wrong> {};

TEST_P(WrongCommandLine, IsRefusedInOneLine) {
  const ProgramRun run = run_halograd(GetParam().arguments);
  expect_failure(run, GetParam().exit_code, GetParam().words);
  expect_one_line(run);
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongCommandLine,
    testing::Values(Wrong{"", 2, {"needs a command", "summary", "bench", "--help"}},
                    Wrong{"sumary cosmoflow", 2, {"sumary", "did you mean summary"}},
                    Wrong{"bench stp", 2, {"stp", "did you mean step"}}, Wrong{"bench", 2, {"needs a command", "step"}},
                    Wrong{"summary", 2, {"model is required"}},
                    Wrong{"summary cosmoflow twice", 2, {"unexpected argument twice"}},
                    Wrong{"summary cosmoflow --widht 64", 2, {"--widht", "did you mean --width"}},
                    Wrong{"summary cosmoflow --width many", 2, {"--width", "many"}},
                    Wrong{"summary cosmoflow --width 40", 2, {"--width", "40", "multiple of 16"}},
                    Wrong{"summary cosmoflow --width 16", 2, {"--width", "16", "from 32 up"}},
                    Wrong{"summary cosmoflow --pool min", 2, {"--pool", "min", "average", "max"}},
                    Wrong{"summary cosmoflow --batch 0", 2, {"--batch", "at least 1"}},
                    Wrong{"summary cosmoflow --grid 2x2", 2, {"--grid", "2x2", "DEPTHxHEIGHTxWIDTH"}},
                    Wrong{"summary cosmoflow --grid 0x1x1", 2, {"--grid", "0x1x1"}},
                    Wrong{"summary cosmoflow --grid 3x1x1 --ranks 4", 2, {"3x1x1", "multiple of 3", "4"}},
                    Wrong{"summary cosmoflow --ranks 0", 2, {"--ranks"}},
                    Wrong{"summary cosmoflow --width 32 --grid 64x1x1", 2, {"32", "64"}},
                    Wrong{"summary cosmoflow --grid 999999x999999x999999", 2, {"999999"}},
                    Wrong{"summary resnet", 2, {"unknown model resnet", "cosmoflow"}},
                    Wrong{"summary unet3d --width 36", 2, {"--width", "36", "multiple of 8"}},
                    Wrong{"summary resnet", 2, {"resnet", "cosmoflow and unet3d"}},
                    Wrong{"summary cosmoflow --precision fp16", 2, {"--precision", "fp16", "tf32", "bf16"}},
                    Wrong{"summary cosmoflow --device gpu", 2, {"--device", "gpu", "cuda"}},
                    Wrong{"summary cosmoflow --device cpu --precision tf32", 2, {"tf32", "bf16"}},
                    Wrong{"summary cosmoflow --device reference --precision bf16", 2, {"reference", "f32"}},
                    Wrong{"summary missing.toml", 2, {"missing.toml"}},
                    Wrong{"bench step cosmoflow --width 32 --grid 2x1x1", 2, {"2x1x1", "1 rank"}},
                    Wrong{
                        "bench step cosmoflow --width 32 --precision fp16", 2, {"--precision", "fp16", "tf32", "bf16"}},
                    Wrong{"bench step cosmoflow --width 32 --device gpu", 2, {"--device", "gpu", "cuda"}},
                    Wrong{"bench step cosmoflow --width 32 --steps -1", 2, {"--steps"}},
                    Wrong{"synth lits --out x --count 1 --width 8", 2, {"width", "8", "16 to 1024"}},
                    Wrong{"synth stars --out x --count 1 --width 32", 2, {"stars", "cosmoflow", "lits"}},
                    Wrong{"synth cosmoflow --count 1 --width 32", 2, {"--out is required"}},
                    Wrong{"synth cosmoflow --out x --count 0 --width 32", 2, {"count"}},
                    Wrong{"synth cosmoflow --out /proc/none --count 1 --width 32", 3, {"/proc/none"}},
                    Wrong{"inspect /no/such/file.hdf5", 3, {"/no/such/file.hdf5", "no such file"}},
                    Wrong{"inspect /proc/self/status", 3, {"/proc/self/status"}}, Wrong{"inspect /tmp", 3, {"/tmp"}}));

TEST(Help, IsThereForEveryCommand) {
  for (const std::string command :
       {"", "train", "evaluate", "predict", "summary", "synth", "convert", "inspect", "bench", "bench step", "info"}) {
    const ProgramRun run = run_halograd(command + " --help");
    EXPECT_EQ(run.exit_code, 0) << command;
    EXPECT_EQ(run.err, "") << command;
    EXPECT_TRUE(holds(run.out, "Usage: halograd" + (command.empty() ? "" : " " + command))) << run.out;
  }
  EXPECT_TRUE(holds(run_halograd("summary --help").out, "--batch-norm"));
  EXPECT_EQ(run_halograd("--version").out.substr(0, 9), "halograd ");
}

TEST(Info, NamesVersionLibrariesAndRanks) {
  const ProgramRun run = run_halograd("info");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* word : {"HaloGrad", "oneDNN", "HDF5", "FFTW", "MPI", "processor", "threads", "memory"}) {
    EXPECT_TRUE(holds(run.out, word)) << word;
  }
  EXPECT_TRUE(holds(run.out, "ranks      1\n")) << run.out;
}

TEST(Info, NamesTheCudaLibrariesThatAreBuiltInWithOrWithoutADriver) {
  const ProgramRun run = run_halograd("info");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> words =
      HALOGRAD_WITH_CUDA
          ? std::vector<std::string>{"CUDA       CUDA runtime 1", ", driver ", "CUDA math  cuDNN 9.", ", cuBLASLt 1",
                                     "NCCL       2."}
          : std::vector<std::string>{"CUDA       built without CUDA\n", "CUDA math  built without CUDA\n",
                                     "NCCL       built without CUDA\n"};
  for (const std::string& word : words) EXPECT_TRUE(holds(run.out, word)) << word << " in\n" << run.out;
}

TEST(Device, OneThatIsNotThereIsRefusedInOneLine) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "there is a GPU";
  for (const char* command : {"bench step cosmoflow --width 32 --device cuda"}) {
    const ProgramRun run = run_halograd(command);
    EXPECT_EQ(run.exit_code, 5) << run.err;
    EXPECT_TRUE(holds(run.err, "halograd: error: ")) << run.err;
    EXPECT_TRUE(holds(run.err, why_no_cuda())) << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
  EXPECT_EQ(run_halograd("bench step cosmoflow --width 32 --device auto --steps 1 --warm-up 0").exit_code, 0);
}

TEST(Precision, Tf32IsForGpus) {
  const ProgramRun run = run_halograd("bench step cosmoflow --width 32 --device cpu --precision tf32");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(holds(run.err, "tf32")) << run.err;
  EXPECT_TRUE(holds(run.err, "bf16")) << run.err;
}

// --- Data ---------------------------------------------------------------------------------------------------------

TEST(Synth, MakesUniversesThatInspectDescribes) {
  const TemporaryDirectory directory;
  const auto set = directory / "universes";
  const ProgramRun made = run_halograd("synth cosmoflow --count 1 --width 32 --seed 7 --out " + set.string());
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const ProgramRun run = run_halograd("inspect " + (set / "universe_00000.hdf5").string());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(holds(run.out, "/full  [32,32,32,4] u16")) << run.out;
  EXPECT_TRUE(holds(run.out, "@seed = 7")) << run.out;
  for (const char* name : {"/unitPar  [4]", "/physPar  [4]", "/redshifts  [4]", "/namePar  [4]"}) {
    EXPECT_TRUE(holds(run.out, name)) << name;
  }
}

TEST(Synth, SharesUniversesAmongRanks) {
  const TemporaryDirectory directory;
  const ProgramRun alone = run_halograd("synth cosmoflow --count 3 --width 32 --out " + (directory / "one").string());
  const ProgramRun shared = run_on(2, "synth cosmoflow --count 3 --width 32 --out " + (directory / "two").string());
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(shared.exit_code, 0) << shared.err;
  for (const std::string name : {"universe_00000.hdf5", "universe_00001.hdf5", "universe_00002.hdf5"}) {
    const std::string one = test::read_file(directory / "one" / name);
    EXPECT_FALSE(one.empty()) << name;
    EXPECT_TRUE(one == test::read_file(directory / "two" / name)) << name;
  }
}

TEST(Inspect, TellsACheckpointsState) {
  const TemporaryDirectory directory;
  const auto file = directory / "step-12.h5";
  std::array<float, 6> values{1, 2, 3, 4, 5, 6};
  const NamedArray weight{"/model/fc1/weight", {2, 3}, values.data()};
  write_checkpoint(file, {.epoch = 3, .step = 12, .seed = 5, .version = "9.8.7"}, {&weight, 1});
  const ProgramRun run = run_halograd("inspect " + file.string());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(holds(run.out, "HaloGrad 9.8.7")) << run.out;
  EXPECT_TRUE(holds(run.out, "epoch 3, ")) << run.out;
  EXPECT_TRUE(holds(run.out, "step 12 ")) << run.out;
  EXPECT_TRUE(holds(run.out, "/model/fc1/weight  [2,3] f32")) << run.out;
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const ProgramRun damaged = run_halograd("inspect " + file.string());
  expect_failure(damaged, 3, {file.string()});
}

TEST(Inspect, CountsTheLabelsOfACase) {
  const TemporaryDirectory directory;
  const auto file = directory / "case.hdf5";
  test::write_case(file.string(), {.attributes = {{"scale", 0.5}, {"offset", -1024}}, .last_label = 9});
  const ProgramRun run = run_halograd("inspect " + file.string());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* said : {"/volume  [8,8,8] i16", "@offset = -1024", "@scale = 0.5", "/segmentation  [8,8,8] u8",
                           "\nlabels: 0 in ", "9 in 0.195 % (1)"}) {
    EXPECT_TRUE(holds(run.out, said)) << said << ": " << run.out;
  }
}

// --- bench step ---------------------------------------------------------------------------------------------------

void expect_report(const nlohmann::json& json, int ranks) {
  for (const char* key : {"width", "batch", "ranks", "threads", "step_seconds", "forward_seconds", "backward_seconds",
                          "update_seconds", "conv_floor_seconds", "gflops", "peak_rss_bytes", "arena_bytes"}) {
    ASSERT_TRUE(json.at(key).is_number()) << key;
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
    EXPECT_TRUE(std::isfinite(json.at(key).get<double>())) << key;
  }
  EXPECT_EQ(json.at("model"), "cosmoflow");
  EXPECT_EQ(json.at("precision"), "f32");
  EXPECT_EQ(json.at("ranks"), ranks);
  EXPECT_EQ(json.at("batch"), 1);
  EXPECT_GE(json.at("comm_seconds").get<double>(), 0);
  // The parts are this step's: together no more than the time from barrier to barrier.
  const double parts = json.at("forward_seconds").get<double>() + json.at("backward_seconds").get<double>() +
                       json.at("update_seconds").get<double>() + json.at("comm_seconds").get<double>();
  EXPECT_LE(parts, json.at("step_seconds").get<double>());
  EXPECT_GT(json.at("peak_rss_bytes").get<double>(), json.at("arena_bytes").get<double>());
}

TEST(BenchStep, ReportsAsJson) {
  const ProgramRun run = run_halograd("bench step cosmoflow --width 32 --batch-norm --steps 2 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  expect_report(json, 1);
  EXPECT_EQ(json.at("grid"), "1x1x1");
  EXPECT_EQ(json.at("halo_bytes_per_step"), 0);
  EXPECT_EQ(json.at("implementations").size(), 7);
}

TEST(BenchStep, ReportsOnceFromTwoRanks) {
  const ProgramRun run = run_on(2, "bench step cosmoflow --width 32 --batch-norm --grid 2x1x1 --steps 2 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  expect_report(json, 2);
  EXPECT_EQ(json.at("grid"), "2x1x1");
  EXPECT_GT(json.at("halo_bytes_per_step"), 0);
}

TEST(BenchStep, ForPeopleAndWithoutTheFloor) {
  const ProgramRun run = run_halograd("bench step cosmoflow --width 32 --steps 1 --warm-up 0 --no-floor");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(holds(run.out, "GFlop/s")) << run.out;
  EXPECT_FALSE(holds(run.out, "run alone")) << run.out;
  const ProgramRun json = run_halograd("bench step cosmoflow --width 32 --steps 1 --warm-up 0 --no-floor --json");
  ASSERT_EQ(json.exit_code, 0) << json.err;
  EXPECT_TRUE(nlohmann::json::parse(json.out).at("conv_floor_seconds").is_null());
}

// --- Several ranks ------------------------------------------------------------------------------------------------

TEST(Ranks, PrintAnErrorThatAllShareOnce) {
  expect_failure(run_on(2, "summary resnet"), 2, {"unknown model resnet"});
  expect_failure(run_on(2, "summary cosmoflow --nothing"), 2, {"unknown option --nothing"});
  expect_failure(run_on(2, "inspect /no/such/file.hdf5"), 3, {"/no/such/file.hdf5"});
}

TEST(Ranks, PrintHelpOnce) {
  const ProgramRun run = run_on(2, "--help");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines_that_begin(run.out, "Usage: "), 1);
  EXPECT_TRUE(holds(run_on(2, "info").out, "ranks      2\n"));
}

TEST(Ranks, NameTheOneThatFailed) {
  const ProgramRun run = run_apart("--version", "inspect /no/such/file.hdf5 twice");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(lines_that_begin(run.err, "halograd: error: "), 1) << run.err;
  EXPECT_TRUE(holds(run.err, "unexpected argument twice")) << run.err;
  EXPECT_TRUE(holds(run.err, "(rank 1)")) << run.err;
}

TEST(Ranks, DoNotHangWhereOneFailsAlone) {
  // Rank 0 waits for rank 1 in the making of its Executor, which rank 1 never comes to.
  const ProgramRun run = run_apart("bench step cosmoflow --width 32 --grid 2x1x1", "summary resnet");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(lines_that_begin(run.err, "halograd: error: "), 1) << run.err;
  EXPECT_TRUE(holds(run.err, "unknown model resnet")) << run.err;
  EXPECT_TRUE(holds(run.err, "(rank 1)")) << run.err;
}

}  // namespace
}  // namespace halograd
