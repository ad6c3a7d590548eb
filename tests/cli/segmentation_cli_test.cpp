#include "cli/training_runs.hpp"

#include <map>

namespace halograd {
namespace {

namespace fs = std::filesystem;
using namespace test;

/// Nine small scans with their labels and a configuration that varies them in every way, made once for all tests: 5 to
/// train on, 2 to validate, 2 to test; in mini-batches of 2, the last of an epoch holds 1. Three epochs are 9 steps.
class Cases {
public:
  static const Cases& shared() {
    static const Cases made;
    return made;
  }
  [[nodiscard]] std::string config() const { return directory_.file("unet3d.toml"); }

private:
  Cases() {
    const std::string cases = directory_.file("cases");
    make(fmt::format("synth lits --count 9 --width 16 --out {}", directory_.file("scans")));
    make(fmt::format("convert lits --volumes {} --out {} --width 16", directory_.file("scans"), cases));
    write_file(config(), fmt::format("[model]\nname = \"unet3d\"\nwidth = 16\nbase_channels = 2\n"
                                     "loss = \"cross_entropy+dice\"\nclass_weights = [0.5, 1, 2]\n"
                                     "[data]\npath = \"{}\"\nformat = \"lits\"\ntransform = \"window\"\n"
                                     "augment_flip = \"dhw\"\naugment_scale = 0.2\naugment_shift = 0.2\n"
                                     "split = [0.5, 0.25, 0.25]\n"
                                     "[train]\nepochs = 3\nbatch_size = 2\nlearning_rate = 1e-4\nlog_samples = true\n"
                                     "checkpoint_every_epochs = 0\ncheckpoint_every_steps = 4\n",
                                     cases));
  }
  static void make(const std::string& arguments) {
    const ProgramRun made = run_halograd(arguments);
    if (made.exit_code != 0) throw std::runtime_error("no cases: " + made.err);
  }
  TemporaryDirectory directory_;
};

std::string arguments(const fs::path& run, const std::string& more) {
  return fmt::format("train {} --run-dir {} {}", Cases::shared().config(), run.string(), more);
}

void train_cases(int ranks, const fs::path& run, const std::string& more = "") {
  const ProgramRun ended = run_ranks(ranks, arguments(run, more));
  ASSERT_EQ(ended.exit_code, 0) << more << ended.err;
}

/// A run that nothing disturbs, made once a grid.
const fs::path& undisturbed(int ranks = 0, const std::string& grid = "1x1x1") {
  struct Run {
    TemporaryDirectory directory;
    fs::path path = directory / "run";
  };
  static std::map<std::string, Run> runs;
  const auto [place, fresh] = runs.try_emplace(fmt::format("{} {}", ranks, grid));
  if (fresh) {
    train_cases(ranks, place->second.path, "--grid " + grid);
    EXPECT_EQ(events(place->second.path, "step").size(), 9U);
  }
  return place->second.path;
}

std::vector<std::string> order_of(const fs::path& run) {
  std::vector<std::string> order;
  for (const Json& step : events(run, "step")) order.push_back(step.at("files").dump());
  return order;
}

/// A voxel whose two best classes are as good as equal may go to either.
void expect_same_dice(const Json& given, const Json& right) {
  ASSERT_EQ(given.size(), right.size());
  for (std::size_t c = 0; c < right.size(); ++c) EXPECT_NEAR(given[c].get<double>(), right[c].get<double>(), 2e-3) << c;
}

Json evaluate(int ranks, const std::string& more) {
  const std::string file = checkpoint(undisturbed(), 9).string();
  const ProgramRun run =
      run_ranks(ranks, fmt::format("evaluate {} --checkpoint {} --json {}", Cases::shared().config(), file, more));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return Json::parse(run.out);
}

TEST(SegmentationCli, every_grid_learns_alike_from_samples_varied_in_every_way) {
  const fs::path& right = undisturbed();
  for (const auto& [ranks, grid] : {std::pair{2, "2x1x1"}, {4, "1x2x2"}, {2, "1x1x1"}, {4, "1x1x2"}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, grid));
    const fs::path& run = undisturbed(ranks, grid);
    expect_near(losses(run), losses(right), 1e-4);
    EXPECT_EQ(order_of(run), order_of(right));
    const std::vector<Json> epochs = events(run, "epoch");
    ASSERT_EQ(epochs.size(), 3U);
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      expect_same_dice(epochs[i].at("validation_dice"), events(right, "epoch")[i].at("validation_dice"));
    }
  }
}

TEST(SegmentationCli, variations_change_what_is_learnt_and_not_what_is_measured) {
  const TemporaryDirectory work;
  for (const char* none : {"data.augment_flip=", "data.augment_scale=0", "data.augment_shift=0"}) {
    const fs::path run = work / none;
    train_cases(0, run, fmt::format("--max-steps 1 --set {}", none));
    EXPECT_GT(std::abs(losses(run).front() - losses(undisturbed()).front()), 1e-4) << none;
  }
  const Json plain =
      evaluate(0, "--split train --set data.augment_flip= --set data.augment_scale=0 --set data.augment_shift=0");
  EXPECT_EQ(evaluate(0, "--split train"), plain);
  EXPECT_EQ(plain.at("samples"), 5);
}

TEST(SegmentationCli, a_run_killed_and_resumed_ends_with_the_same_bits) {
  for (const auto& [ranks, grid] : {std::pair{0, "1x1x1"}, std::pair{2, "2x1x1"}}) {
    const TemporaryDirectory work;
    const std::string longer = fmt::format("--grid {} --set train.epochs=20", grid);  // 60 steps: time to be killed in
    train_cases(ranks, work / "whole", longer);
    const fs::path run = work / "run";
    {
      BackgroundRun program(command_line(ranks, arguments(run, longer)));
      ASSERT_TRUE(wait_for_steps(run, 6));
      if (ranks > 0) {
        program.signal_child(SIGKILL);
      } else {
        program.signal(SIGKILL);
      }
      ASSERT_TRUE(program.wait(30).has_value());
    }
    ASSERT_TRUE(events(run, "test").empty()) << "ended before it was killed";
    train_cases(ranks, run, longer + " --resume");
    EXPECT_EQ(results(run), results(work / "whole"));
    EXPECT_TRUE(read_file(checkpoint(run, 60)) == read_file(checkpoint(work / "whole", 60))) << "other weights";
  }
}

TEST(SegmentationCli, a_run_goes_on_from_max_steps_on_any_grid) {
  const TemporaryDirectory work;
  const fs::path first = work / "first";
  train_cases(0, first, "--max-steps 5");  // in mid-epoch, and its next mini-batches are varied
  ASSERT_EQ(events(first, "step").size(), 5U);
  const fs::path other = work / "other";
  fs::copy(first, other, fs::copy_options::recursive);
  train_cases(2, other, "--resume --grid 1x2x1");
  expect_near(losses(other), losses(undisturbed()), 1e-4);
  const ProgramRun refused = run_ranks(0, arguments(first, "--resume --set data.augment_flip=hw"));
  expect_failure(refused, 2, {"data.augment_flip: \"dhw\" -> \"hw\""});
  train_cases(0, first, "--resume");
  EXPECT_EQ(results(first), results(undisturbed()));
}

TEST(SegmentationCli, evaluate_prints_dice_alike_on_every_grid) {
  const Json right = events(undisturbed(), "test").front();
  EXPECT_EQ(evaluate(0, ""), right);
  ASSERT_EQ(right.at("dice").size(), 3U);
  EXPECT_EQ(right.at("dice_per_case").size(), 3U);
  EXPECT_EQ(right.at("samples"), 2);
  const double foreground = (right.at("dice")[1].get<double>() + right.at("dice")[2].get<double>()) / 2;
  EXPECT_NEAR(right.at("mean_dice").get<double>(), foreground, 1e-12);
  for (const auto& [ranks, grid] : {std::pair{2, "2x1x1"}, {4, "1x2x2"}, {4, "1x1x1"}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, grid));
    const Json given = evaluate(ranks, fmt::format("--grid {}", grid));
    EXPECT_NEAR(given.at("loss").get<double>(), right.at("loss").get<double>(), 1e-5);
    expect_same_dice(given.at("dice"), right.at("dice"));
    expect_same_dice(given.at("dice_per_case"), right.at("dice_per_case"));
  }
}

TEST(SegmentationCli, people_read_one_line_a_metric) {
  const std::string file = checkpoint(undisturbed(), 9).string();
  const ProgramRun run = run_ranks(0, fmt::format("evaluate {} --checkpoint {}", Cases::shared().config(), file));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json right = events(undisturbed(), "test").front();
  const auto number = [](const Json& value) { return fmt::format("{:.5g}", value.get<double>()); };
  const Json& dice = right.at("dice");
  for (const std::string& line :
       {fmt::format("{:<28}{}\n", "loss", number(right.at("loss"))), fmt::format("{:<28}2\n", "samples"),
        fmt::format("{:<28}{}\n", "mean_dice", number(right.at("mean_dice"))),
        fmt::format("{:<28}{}  {}  {}\n", "dice", number(dice[0]), number(dice[1]), number(dice[2]))}) {
    EXPECT_NE(run.out.find(line), std::string::npos) << line << "is not in: " << run.out;
  }
  const std::string log = read_file(undisturbed() / "log.txt");
  EXPECT_NE(log.find(", mean Dice "), std::string::npos) << log;
  EXPECT_NE(log.find(fmt::format("test: loss {}, samples 2, mean_dice", number(right.at("loss")))), std::string::npos)
      << log;
}

}  // namespace
}  // namespace halograd
