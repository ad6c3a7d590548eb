#include "cli/training_runs.hpp"

#include <map>

namespace halograd::test {
namespace {

Json bench_io(int ranks, const std::string& arguments) {
  const ProgramRun run = run_on(ranks, "bench io --json " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return Json::parse(run.out, nullptr, false);
}

TEST(BenchIo, reads_every_byte_once_and_then_none) {
  const double set = 6.0 * 16 * 16 * 16 * 4 * 2;
  const Json cases = bench_io(4, "--width 16 --samples 6 --grid 2x2x1,1x1x2 --batch 2");
  ASSERT_EQ(cases.size(), 3U * 2U * 5U);
  for (const Json& one : cases) {
    const std::string name = one.at("layout").get<std::string>() + ' ' + one.at("grid").get<std::string>() + ' ' +
                             one.at("way").get<std::string>();
    EXPECT_EQ(one.at("set_bytes"), set) << name;
    EXPECT_EQ(one.at("first_epoch_file_bytes"), set) << name;
    EXPECT_EQ(one.at("later_file_bytes"), 0) << name;
    EXPECT_GT(one.at("read_gb_per_second").get<double>(), 0) << name;
    EXPECT_GT(one.at("wait_seconds").get<double>(), 0) << name;
    EXPECT_EQ(one.at("samples"), 6) << name;
    EXPECT_EQ(one.at("ranks"), 4) << name;
    if (one.at("way") == "sample") {
      EXPECT_EQ(one.at("shape"), "whole samples");
      EXPECT_EQ(one.at("probe_bytes"), 0);
    } else if (one.at("way") != "auto") {
      EXPECT_EQ(one.at("driver"), one.at("way"));
    }
    // The shuffle gives the second group of 1x1x2 other samples than before.
    const bool groups = one.at("grid") == "1x1x2";
    EXPECT_EQ(one.at("exchanged_bytes").get<double>() > 0, groups) << name;
  }
}

TEST(BenchIo, without_a_store_every_epoch_reads) {
  for (const Json& one : bench_io(2, "--width 16 --samples 3 --epochs 4 --store off --layout gzip --driver auto")) {
    EXPECT_EQ(one.at("later_file_bytes").get<double>(), 3 * one.at("first_epoch_file_bytes").get<double>());
  }
}

TEST(BenchIo, prints_a_table_of_found_files) {
  const ProgramRun run = run_halograd("bench io --width 32 --data " + Universes::shared().set().string());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines_that_begin(run.out, "layout"), 1) << run.out;
  EXPECT_EQ(lines_that_begin(run.out, "as found  1x1x1"), 3) << run.out;  // auto, posix, sample
}

TEST(BenchIo, refuses_what_it_does_not_know) {
  const auto refused = [](const std::string& arguments, int exit_code, const std::string& part) {
    SCOPED_TRACE(arguments);
    expect_failure(run_halograd("bench io " + arguments), exit_code, {part});
  };
  refused("--layout zip", 2, "contiguous, chunked, gzip");
  refused("--driver mpi", 2, "mpi-collective");
  refused("--store ram", 2, "memory, disk, off");
  refused("--samples 0", 2, "--samples");
  refused("--grid 2x1x1", 2, "2x1x1");
  refused("--dir /nowhere/here", 5, "/nowhere/here");
  refused("--data /nowhere/here", 3, "/nowhere/here");
}

}  // namespace
}  // namespace halograd::test
