#include "cli/training_runs.hpp"

#include <array>
#include <set>

namespace halograd::test {
namespace {

constexpr std::int64_t universe_bytes = 32 * 32 * 32 * 4 * 2;

/// Checkpoints, each of which waits for the disk, only where they matter.
constexpr const char* few_checkpoints = " --set train.checkpoint_every_steps=0";

struct Layout {
  int ranks;
  const char* grid;
};

std::vector<std::int64_t> file_bytes(const std::filesystem::path& run) {
  std::vector<std::int64_t> bytes;
  for (const Json& epoch : events(run, "epoch")) bytes.push_back(epoch.at("file_bytes").get<std::int64_t>());
  return bytes;
}

TEST(DataCli, every_voxel_is_read_once_and_then_none_in_the_same_order_everywhere) {
  std::vector<std::string> order;
  for (const Layout& layout : {Layout{1, "1x1x1"}, {2, "1x1x2"}, {4, "1x2x1"}}) {
    const TemporaryDirectory run;
    const ProgramRun ended =
        train(layout.ranks, run.path() / "run",
              fmt::format("--grid {} --set train.log_samples=true{}", layout.grid, few_checkpoints));
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    // Seven samples to train on and two to validate.
    EXPECT_EQ(file_bytes(run.path() / "run"), (std::vector<std::int64_t>{9 * universe_bytes, 0, 0})) << layout.grid;
    std::vector<std::string> files;
    for (const Json& step : events(run.path() / "run", "step")) files.push_back(step.at("files").dump());
    EXPECT_EQ(files.size(), 12U);
    if (order.empty()) order = files;
    EXPECT_EQ(files, order) << layout.grid;
  }
}

TEST(DataCli, without_a_store_every_epoch_reads) {
  const TemporaryDirectory run;
  ASSERT_EQ(train(2, run.path() / "run", std::string("--grid 2x1x1 --set data.store=off") + few_checkpoints).exit_code,
            0);
  EXPECT_EQ(file_bytes(run.path() / "run"), std::vector<std::int64_t>(3, 9 * universe_bytes));
}

std::vector<Json> results_of(const Layout& layout, const std::filesystem::path& run, const std::string& more) {
  const ProgramRun ended = train(layout.ranks, run, fmt::format("--grid {} {}", layout.grid, more));
  EXPECT_EQ(ended.exit_code, 0) << more << ended.err;
  return results(run);
}

void expect_same_losses(const Layout& layout, const std::vector<std::string>& ways) {
  const TemporaryDirectory runs;
  const std::vector<Json> right = results_of(layout, runs.path() / "plain", few_checkpoints);
  ASSERT_EQ(right.size(), 12U + 3U + 1U);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const std::filesystem::path run = runs.path() / fmt::format("{}", i);
    EXPECT_EQ(results_of(layout, run, ways[i] + few_checkpoints), right) << ways[i];
  }
}

TEST(DataCli, losses_do_not_depend_on_where_samples_are_kept) {
  const Layout two_groups{4, "1x1x2"};
  expect_same_losses(two_groups, {"--set data.store=off", "--set data.store_budget=300KB", "--set data.io=sample"});
}

TEST(DataCli, nor_on_how_they_are_read) {
  expect_same_losses({2, "1x1x2"}, {"--set data.store=disk", "--set data.store=off --set data.io=sample",
                                    "--set data.driver=mpi-independent", "--set data.driver=mpi-collective"});
}

TEST(DataCli, nor_on_a_restart_in_mid_epoch) {
  const Layout two_groups{2, "1x1x1"};
  const TemporaryDirectory runs;
  const std::vector<Json> right = results_of(two_groups, runs.path() / "plain", few_checkpoints);
  results_of(two_groups, runs.path() / "resumed", "--max-steps 6");  // there are 4 in each epoch
  EXPECT_EQ(results_of(two_groups, runs.path() / "resumed", "--resume"), right);
}

TEST(DataCli, cubes_of_larger_files_are_samples_on_any_grid) {
  const TemporaryDirectory work;
  const std::filesystem::path set = work.path() / "set";
  ASSERT_EQ(run_halograd("synth cosmoflow --count 3 --width 64 --out " + set.string()).exit_code, 0);
  const std::string settings = fmt::format(
      "--set data.path={} --set data.subvolume=32 --set data.split=[0.4,0.3,0.3] --set train.batch_size=3 "
      "--set train.epochs=2 --set train.log_samples=true{}",
      set.string(), few_checkpoints);
  std::vector<double> right;
  for (const Layout& layout : {Layout{1, "1x1x1"}, {4, "1x1x2"}}) {
    const std::filesystem::path run = work.path() / fmt::format("run-{}", layout.grid);
    const ProgramRun ended = train(layout.ranks, run, fmt::format("--grid {} {}", layout.grid, settings));
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    // One universe of eight cubes to train on, one to validate.
    EXPECT_EQ(file_bytes(run), (std::vector<std::int64_t>{16 * universe_bytes, 0})) << layout.grid;
    std::set<std::string> cubes;
    for (const Json& step : events(run, "step")) {
      for (const Json& file : step.at("files")) cubes.insert(file.get<std::string>());
    }
    EXPECT_EQ(cubes.size(), 8U);
    EXPECT_NE(cubes.begin()->find(".hdf5[0:32,0:32,0:32]"), std::string::npos) << *cubes.begin();
    EXPECT_EQ(events(run, "test").at(0).at("samples"), 8);
    if (right.empty()) right = losses(run);
    expect_near(losses(run), right, 1e-4);
  }
}

TEST(DataCli, a_warm_store_needs_no_files) {
  // No test split: nothing is read after the first epoch.
  const TemporaryDirectory work;
  const std::filesystem::path set = work.path() / "set";
  std::filesystem::copy(Universes::shared().set(), set);
  const std::string settings = fmt::format(
      "--set data.path={} --set data.split=[0.75,0.25,0] --set train.epochs=30 --set train.batch_size=3", set.string());
  BackgroundRun run(
      command_line(2, train_arguments(work.path() / "run", std::string("--grid 2x1x1 ") + settings + few_checkpoints)));
  ASSERT_TRUE(wait_for_steps(work.path() / "run", 4));  // three a epoch
  std::filesystem::remove_all(set);
  const std::optional<int> status = run.wait(60);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WEXITSTATUS(*status), 0);
  EXPECT_EQ(events(work.path() / "run", "step").size(), 90U);
}

TEST(DataCli, bad_settings_are_refused) {
  const auto refused = [&](const std::string& setting, int exit_code, const std::string& part) {
    const TemporaryDirectory run;
    SCOPED_TRACE(setting);
    expect_failure(train(0, run.path() / "run", "--set " + setting), exit_code, {part});
    EXPECT_FALSE(std::filesystem::exists(run.path() / "run"));
  };
  refused("data.store_budget=8G", 2, "8GiB");
  refused("data.store=yes", 2, "\"memory\" or \"disk\" or \"off\"");
  refused("data.driver=mpi", 2, "mpi-collective");
  refused("data.driver=mpi-independent", 2, "mpirun");
  refused("data.io=whole", 2, "\"hyperslab\" or \"sample\"");
  refused("data.subvolume=16", 2, "model.width");
  refused("'data.store=disk' --set data.store_dir=/nowhere", 5, "/nowhere");
}

}  // namespace
}  // namespace halograd::test
