#include "cli/machine_files.hpp"
#include "cli/program.hpp"
#include "halograd/device/cuda_device.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace halograd {
namespace {

using nlohmann::json;
using test::expect_failure;
using test::holds;
using test::number;
using test::parsed;
using test::ProgramRun;
using test::run_halograd;
using test::TemporaryDirectory;
using testing::TestWithParam;

struct TableOne {
  int width;
  const char* flops;
  const char* forward_flops;
  const char* memory;
  const char* memory_with_batch_norm;
};
void PrintTo(const TableOne& row, std::ostream* out) {
  *out << row.width;
}

class SummaryOfCosmoflow : public TestWithParam<TableOne> {};

TEST_P(SummaryOfCosmoflow, PrintsThePapersFigures) {
  const TableOne& row = GetParam();
  const ProgramRun run = run_halograd("summary cosmoflow --width " + std::to_string(row.width));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(holds(run.out, std::string(" ") + row.flops + " GFlop forward and backward")) << run.out;
  EXPECT_TRUE(holds(run.out, std::string(" ") + row.forward_flops + " GFlop forward\n")) << run.out;
  EXPECT_TRUE(holds(run.out, std::string(" ") + row.memory + " GiB\n")) << run.out;
  EXPECT_TRUE(holds(run.out, "9.44 million (9,437,636)")) << run.out;
  const ProgramRun with = run_halograd("summary cosmoflow --batch-norm --width " + std::to_string(row.width));
  EXPECT_TRUE(holds(with.out, std::string(" ") + row.memory_with_batch_norm + " GiB (twice")) << with.out;
  EXPECT_TRUE(holds(with.out, "(9,439,652)")) << with.out;
}

INSTANTIATE_TEST_SUITE_P(TableI, SummaryOfCosmoflow,
                         testing::Values(TableOne{128, "55.55", "18.52", "0.824", "1.65"},
                                         TableOne{256, "443.8", "147.9", "6.59", "13.2"},
                                         TableOne{512, "3550", "1183", "52.7", "105"}));

TEST(Summary, AsJson) {
  const ProgramRun run = run_halograd("summary cosmoflow --width 128 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json summary = json::parse(run.out);
  EXPECT_EQ(summary.at("parameters"), 9437636);
  EXPECT_NEAR(summary.at("conv_flops").get<double>(), 55.55e9, 0.005e9);
  EXPECT_DOUBLE_EQ(summary.at("conv_forward_flops").get<double>() * 3, summary.at("conv_flops").get<double>());
  EXPECT_NEAR(summary.at("paper_memory_bytes").get<double>() / (1 << 30), 0.8237, 0.00005);
  EXPECT_EQ(summary.at("ranks"), 1);
  EXPECT_EQ(summary.at("halo_bytes_per_step"), 0);
  // The plan has to hold conv1's output and is no larger than the paper's figure.
  EXPECT_GT(summary.at("arena_bytes").get<double>(), 4.0 * 16 * 128 * 128 * 128);
  EXPECT_LT(summary.at("arena_bytes").get<double>(), summary.at("paper_memory_bytes").get<double>());
  EXPECT_EQ(summary.at("layers").front().at("name"), "conv1");
  EXPECT_EQ(summary.at("layers").front().at("output"), json({16, 128, 128, 128}));
  EXPECT_EQ(summary.at("layers").front().at("parameters"), 4 * 16 * 27);
  std::int64_t parameters = 0;
  for (const auto& layer : summary.at("layers")) parameters += layer.at("parameters").get<std::int64_t>();
  EXPECT_EQ(parameters, 9437636);
}

TEST(Summary, PlansAnyRanksInOneProcess) {
  const ProgramRun whole = run_halograd("summary cosmoflow --width 128 --batch 2 --json");
  const ProgramRun split = run_halograd("summary cosmoflow --width 128 --batch 2 --grid 4x2x1 --ranks 16 --json");
  ASSERT_EQ(whole.exit_code + split.exit_code, 0) << whole.err << split.err;
  const auto one = json::parse(whole.out);
  const auto many = json::parse(split.out);
  EXPECT_EQ(many.at("data_groups"), 2);
  EXPECT_EQ(many.at("layers").front().at("partition"), "4x2x1");
  EXPECT_EQ(many.at("layers").back().at("partition"), "1x1x1");
  EXPECT_FALSE(many.at("reshards").empty());
  EXPECT_GT(many.at("halo_bytes_per_step"), 0);
  // A sixteenth of the voxels, and margins.
  EXPECT_LT(many.at("arena_bytes").get<double>(), one.at("arena_bytes").get<double>() / 16 * 1.5);
  EXPECT_GT(many.at("arena_bytes").get<double>(), one.at("arena_bytes").get<double>() / 16 * 0.9);
}

TEST(Summary, OfTheUnetTellsItsCopies) {
  const json summary = json::parse(run_halograd("summary unet3d --width 40 --grid 2x1x1 --json").out);
  EXPECT_EQ(summary.at("parameters"), 19070560);
  EXPECT_EQ(summary.at("batch_norm"), true);
  EXPECT_EQ(summary.at("layers").back().at("kind"), "cross entropy");
  // Where cuts do not agree, the upsampled tensor moves; else it is copied beside its skip.
  EXPECT_EQ(summary.at("reshards"), json({"concat1 reshard: deconv1 moves to other cuts into 2x1x1 parts"}));
  EXPECT_EQ(summary.at("copies").size(), 2);
  const ProgramRun text = run_halograd("summary unet3d --width 256");
  EXPECT_TRUE(holds(text.out, "(19,070,560)")) << text.out;
  EXPECT_TRUE(holds(text.out, "3.126e+04 GFlop forward")) << text.out;
  EXPECT_TRUE(holds(text.out, "concat3 copy: deconv3 is copied within each rank")) << text.out;
}

TEST(Summary, TakesAConfigurationFile) {
  const TemporaryDirectory directory;
  const auto file = directory / "run.toml";
  test::write_file(file,
                   "[model]\nwidth = 64\npool = \"max\"\n[train]\nbatch_size = 6\n[parallel]\ngrid = \"2x1x1\"\n");
  const ProgramRun run = run_halograd("summary " + file.string() + " --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json summary = json::parse(run.out);
  EXPECT_EQ(summary.at("width"), 64);
  EXPECT_EQ(summary.at("pool"), "max");
  EXPECT_EQ(summary.at("batch_norm"), true);
  EXPECT_EQ(summary.at("batch"), 6);
  EXPECT_EQ(summary.at("grid"), "2x1x1");
}

json summary_of(const std::string& arguments) {
  return parsed(run_halograd("summary " + arguments + " --json"));
}

TEST(Summary, OfBf16ShowsHalfTheActivations) {
  const std::string unet = "unet3d --width 64 --device cpu --grid 2x1x1 --precision ";
  const json f32 = summary_of(unet + "f32");
  const json bf16 = summary_of(unet + "bf16");
  EXPECT_EQ(f32.at("precision"), "f32");
  EXPECT_EQ(bf16.at("precision"), "bf16");
  EXPECT_EQ(bf16.at("device"), "cpu");
  EXPECT_LE(number(bf16, "arena_bytes"), 0.55 * number(f32, "arena_bytes"));
  EXPECT_GE(number(bf16, "arena_bytes"), 0.5 * number(f32, "arena_bytes"));
  // Halos are activations too; sums, weights and their state are float32 in either.
  EXPECT_EQ(2 * number(bf16, "halo_bytes_per_step"), number(f32, "halo_bytes_per_step"));
  EXPECT_EQ(2 * number(bf16, "outputs_and_error_signals_bytes"), number(f32, "outputs_and_error_signals_bytes"));
  EXPECT_EQ(bf16.at("parameter_bytes"), f32.at("parameter_bytes"));
  EXPECT_EQ(bf16.at("paper_memory_bytes"), f32.at("paper_memory_bytes"));
  const ProgramRun text = run_halograd("summary " + unet + "bf16");
  EXPECT_TRUE(holds(text.out, "mini-batch 1, bf16 on cpu\n")) << text.out;
}

TEST(Summary, TakesPrecisionAndDeviceFromAConfigurationFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("run.toml");
  test::write_file(file,
                   "[model]\nwidth = 32\n[train]\nbatch_size = 1\nprecision = \"bf16\"\n"
                   "[parallel]\ndevice = \"cuda\"\n");
  const json configured = summary_of(file);
  EXPECT_EQ(configured.at("precision"), "bf16");
  EXPECT_EQ(configured.at("device"), "cuda");
  EXPECT_EQ(configured, summary_of("cosmoflow --width 32 --batch 1 --batch-norm --precision bf16 --device cuda"));
  const json changed = summary_of(file + " --precision f32 --device cpu");
  EXPECT_EQ(changed.at("precision"), "f32");
  EXPECT_EQ(changed.at("device"), "cpu");
  EXPECT_GT(number(changed, "arena_bytes"), 1.8 * number(configured, "arena_bytes"));
}

/// A processor's buffers begin on pages of 4,096 bytes, a GPU's on 256: the plan of a GPU packs small ones closer.
TEST(Summary, OfAGpuNeedsNone) {
  const std::string small = "cosmoflow --width 32 --batch-norm --device ";
  const json gpu = summary_of(small + "cuda");
  const json processor = summary_of(small + "cpu");
  EXPECT_EQ(gpu.at("device"), "cuda");
  EXPECT_LT(number(gpu, "arena_bytes"), number(processor, "arena_bytes"));
  EXPECT_EQ(summary_of(small + "auto").at("device"), cuda_devices().empty() ? "cpu" : "cuda");
  EXPECT_EQ(summary_of(small + "cuda --precision tf32").at("arena_bytes"), gpu.at("arena_bytes"));
}

TEST(Summary, ToldWithTheMemoryThatARunPlans) {
  const std::string run = "cosmoflow --width 32 --batch-norm --batch 1 --device cpu --precision bf16";
  const json measured = parsed(run_halograd("bench step " + run + " --steps 1 --warm-up 0 --no-floor --json"));
  EXPECT_EQ(measured.at("precision"), "bf16");
  EXPECT_EQ(measured.at("arena_bytes"), summary_of(run).at("arena_bytes"));
}

}  // namespace
}  // namespace halograd
