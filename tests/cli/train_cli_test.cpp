#include "cli/training_runs.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace halograd {
namespace {

namespace fs = std::filesystem;
using namespace test;

/// A run that nothing disturbs, made once: what the others must come to.
const fs::path& undisturbed(int ranks, const std::string& grid) {
  struct Run {
    TemporaryDirectory directory;
    fs::path path = directory / "run";
  };
  static std::map<std::string, Run> runs;
  const auto [place, fresh] = runs.try_emplace(fmt::format("{} {}", ranks, grid));
  if (fresh) {
    const ProgramRun run = train(ranks, place->second.path, "--grid " + grid);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(events(place->second.path, "step").size(), 12);
    EXPECT_EQ(events(place->second.path, "test").size(), 1);
  }
  return place->second.path;
}

void expect_same_bits(const fs::path& run, const fs::path& right) {
  EXPECT_EQ(results(run), results(right));
  EXPECT_TRUE(read_file(checkpoint(run, 12)) == read_file(checkpoint(right, 12))) << "other weights";
  EXPECT_EQ(leftovers(run), std::vector<std::string>{});
}

/// Trains in the background until `steps` steps are logged, then sends the signal: to the program or, where `to_rank`,
/// to the first rank that mpirun started. It must end soon.
void train_until(int ranks, const std::string& arguments, const fs::path& run, std::size_t steps, int signal,
                 bool to_rank) {
  BackgroundRun program(command_line(ranks, train_arguments(run, arguments)));
  ASSERT_TRUE(wait_for_steps(run, steps));
  if (to_rank) {
    program.signal_child(signal);
  } else {
    program.signal(signal);
  }
  const auto status = program.wait(30);
  ASSERT_TRUE(status.has_value()) << "goes on after the signal";
  if (signal == SIGTERM) return;  // mpirun takes a while to pass it on: the run may have come to its end by then
  EXPECT_NE(*status, 0);
  ASSERT_LT(events(run, "step").size(), 12U) << "ended before it was killed";
}

// --- Resuming -----------------------------------------------------------------------------------------------------

TEST(Resume, EndsWithTheSameBitsAfterControlCAndKill) {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train_until(0, "", run, 5, SIGINT, false);
  train_until(0, "--resume", run, 7, SIGKILL, false);
  const ProgramRun resumed = train(0, run, "--resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(events(run, "run").size(), 1);
  expect_same_bits(run, undisturbed(0, "1x1x1"));
}

TEST(Resume, EndsWithTheSameBitsOnTwoRanksAfterTheKillOfOneAndSigterm) {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train_until(2, "--grid 2x1x1", run, 5, SIGKILL, true);
  train_until(2, "--grid 2x1x1 --resume", run, 7, SIGTERM, false);
  const ProgramRun resumed = train(2, run, "--grid 2x1x1 --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_same_bits(run, undisturbed(2, "2x1x1"));
}

TEST(Resume, GoesOnFromMaxStepsOnAnyGrid) {
  const TemporaryDirectory directory;
  const fs::path first = directory / "first";
  const ProgramRun begun = train(0, first, "--max-steps 5");
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_EQ(events(first, "step").size(), 5);
  EXPECT_TRUE(events(first, "test").empty());
  for (const std::string grid : {"2x1x1", "1x1x1"}) {  // two parts of each sample; two groups
    const fs::path other = directory / grid;
    fs::copy(first, other, fs::copy_options::recursive);
    const ProgramRun resumed = train(2, other, "--resume --grid " + grid);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    expect_near(losses(other), losses(undisturbed(0, "1x1x1")), 1e-4);
  }
  const ProgramRun resumed = train(0, first, "--resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_same_bits(first, undisturbed(0, "1x1x1"));
  // Resuming what is done measures the test set again and changes nothing.
  const ProgramRun again = train(0, first, "--resume");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  expect_same_bits(first, undisturbed(0, "1x1x1"));
}

TEST(Resume, FallsBackWhereTheNewestCheckpointIsDamaged) {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  ASSERT_EQ(train(0, run, "--max-steps 7").exit_code, 0);
  fs::resize_file(checkpoint(run, 7), fs::file_size(checkpoint(run, 7)) / 2);
  const ProgramRun resumed = train(0, run, "--resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("cut short"), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find("checkpoint_00000006.h5"), std::string::npos) << resumed.err;
  expect_same_bits(run, undisturbed(0, "1x1x1"));
}

TEST(Resume, BeginsWithTheGivenWeightsWhereThereIsNoCheckpointYet) {
  const TemporaryDirectory directory;
  const std::string weights = "--set train.initial_checkpoint=" + checkpoint(undisturbed(0, "1x1x1"), 12).string();
  const ProgramRun whole = train(0, directory / "whole", weights + " --max-steps 1");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const fs::path early = directory / "early";  // ended before its first checkpoint
  fs::create_directories(early / "checkpoints");
  fs::copy_file(directory / "whole" / "config.toml", early / "config.toml");
  const ProgramRun resumed = train(0, early, weights + " --max-steps 1 --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(results(early), results(directory / "whole"));
  EXPECT_NE(results(early), std::vector<Json>{results(undisturbed(0, "1x1x1")).front()});
}

TEST(Splits, WithoutTestSamplesNoTestIsLogged) {
  const TemporaryDirectory directory;
  const ProgramRun run = train(0, directory / "run", "--set data.split=[1,0,0] --set train.epochs=1");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ((run.out + run.err).find("test: "), std::string::npos) << run.out << run.err;
  EXPECT_NE((run.out + run.err).find("results in "), std::string::npos) << run.out << run.err;
  EXPECT_EQ(events(directory / "run", "test").front().at("samples"), 0);
}

// --- Grids, groups and the samplers' order ------------------------------------------------------------------------

TEST(Checkpoints, ByStepsComeAtTheEndOfAnEpochToo) {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  // Nine samples to train on are five steps an epoch; without validation no checkpoint is written for being the best.
  const std::string options = "--set data.split=[0.75,0,0.25] --set train.checkpoint_every_steps=5 --max-steps 6";
  ASSERT_EQ(train(0, run, options).exit_code, 0);
  EXPECT_TRUE(fs::exists(checkpoint(run, 5)));
}

TEST(Groups, SomeWithoutASampleTrainAlike) {
  const TemporaryDirectory directory;
  const ProgramRun run = train(4, directory / "run", "--grid 1x1x1");  // four groups share two samples, then one
  EXPECT_EQ(run.exit_code, 0) << run.err;
  expect_near(losses(directory / "run"), losses(undisturbed(0, "1x1x1")), 1e-4);
  EXPECT_EQ(events(directory / "run", "test").front().at("samples"), 3);
}

TEST(MiniBatch, LargerThanTheSetIsTheSet) {
  const TemporaryDirectory directory;
  const ProgramRun run = train(2, directory / "run",
                               "--max-steps 2 --set train.checkpoint_every_steps=0 --set "
                               "train.batch_size=9223372036854775807 --set train.lr_decay_epochs=9223372036854775807");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto steps = events(directory / "run", "step");
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[1].at("epoch"), 1);
  EXPECT_EQ(steps[1].at("samples"), 7);
  EXPECT_DOUBLE_EQ(steps[1].at("learning_rate").get<double>(), 1e-4);
}

TEST(LoggedSamples, ComeInTheSameOrderOnEveryGrid) {
  const TemporaryDirectory directory;
  const std::string options = "--set train.log_samples=true --set train.checkpoint_every_steps=0 --max-steps 8 --grid ";
  std::vector<std::vector<std::string>> orders;
  for (const auto& [ranks, grid] : {std::pair{0, "1x1x1"}, std::pair{2, "2x1x1"}, std::pair{2, "1x1x1"}}) {
    const fs::path run = directory / fmt::format("{}_{}", ranks, grid);
    const ProgramRun trained = train(ranks, run, options + grid);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    std::vector<std::string> order;
    for (const Json& step : events(run, "step")) {
      EXPECT_EQ(step.at("files").size(), step.at("samples").get<std::size_t>());
      for (const Json& file : step.at("files")) order.push_back(file.get<std::string>());
    }
    orders.push_back(order);
  }
  ASSERT_EQ(orders[0].size(), 14U);
  EXPECT_EQ(orders[1], orders[0]);
  EXPECT_EQ(orders[2], orders[0]);
  // Each epoch takes every sample once, and the second in another order.
  std::vector<std::string> first(orders[0].begin(), orders[0].begin() + 7);
  std::vector<std::string> second(orders[0].begin() + 7, orders[0].end());
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::ranges::adjacent_find(first), first.end());
}

// --- Evaluating and predicting ------------------------------------------------------------------------------------

std::string evaluate_arguments(const std::string& more) {
  return fmt::format("evaluate {} --checkpoint {} --json {}", Universes::shared().config().string(),
                     checkpoint(undisturbed(0, "1x1x1"), 12).string(), more);
}

TEST(Evaluate, PrintsTheRunsTestEvent) {
  const ProgramRun run = run_ranks(0, evaluate_arguments(""));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out), events(undisturbed(0, "1x1x1"), "test").front());
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1);
}

TEST(Evaluate, AgreesOnOtherGridsAndCountsEverySampleOnce) {
  const Json right = events(undisturbed(0, "1x1x1"), "test").front();
  for (const std::string grid : {"2x1x1", "1x1x1"}) {  // three samples for two groups
    const ProgramRun run = run_ranks(2, evaluate_arguments("--grid " + grid));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Json given = Json::parse(run.out);
    EXPECT_EQ(given.at("samples"), 3);
    EXPECT_NEAR(given.at("loss").get<double>(), right.at("loss").get<double>(), 1e-4);
    EXPECT_NEAR(given.at("mae").get<double>(), right.at("mae").get<double>(), 1e-4);
    for (const auto& [name, error] : right.at("mae_by_parameter").items()) {
      EXPECT_NEAR(given.at("mae_by_parameter").at(name).get<double>(), error.get<double>(), 1e-4) << name;
    }
  }
  const ProgramRun training = run_ranks(0, evaluate_arguments("--split train"));
  EXPECT_EQ(Json::parse(training.out).at("samples"), 7);
  EXPECT_EQ(Json::parse(training.out).at("event"), "train");
}

TEST(Predict, WritesOneFileAlikeOnOneRankAndTwo) {
  const TemporaryDirectory directory;
  std::vector<std::vector<double>> predictions;
  for (const auto& [ranks, grid] : {std::pair{0, "1x1x1"}, std::pair{2, "2x1x1"}, std::pair{2, "1x1x1"}}) {
    const fs::path output = directory / fmt::format("{}_{}.json", ranks, grid);
    const ProgramRun run = run_ranks(
        ranks, fmt::format("predict {} --checkpoint {} --input {} --output {} --grid {}",
                           Universes::shared().config().string(), checkpoint(undisturbed(0, "1x1x1"), 12).string(),
                           Universes::shared().file(3).string(), output.string(), grid));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Json result = Json::parse(read_file(output));
    EXPECT_EQ(result.at("input"), Universes::shared().file(3).string());
    predictions.push_back(result.at("prediction").get<std::vector<double>>());
    ASSERT_EQ(predictions.back().size(), 4U);
  }
  EXPECT_NE(predictions[0], std::vector<double>(4, 0.0));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(predictions[1][i], predictions[0][i], 1e-5);
    EXPECT_NEAR(predictions[2][i], predictions[0][i], 1e-5);
  }
  EXPECT_EQ(leftovers(directory.path()), std::vector<std::string>{});
}

}  // namespace
}  // namespace halograd
