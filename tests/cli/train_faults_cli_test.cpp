#include "cli/broken_samples.hpp"
#include "cli/training_runs.hpp"
#include "halograd/train/checkpoint.hpp"

#include <algorithm>
#include <chrono>

namespace halograd {
namespace {

namespace fs = std::filesystem;
using namespace test;

/// One error line that says `words`, the right exit code, within seconds, and nothing half-written below `root`.
void expect_fault(const ProgramRun& run, int exit_code, const std::vector<std::string>& words,
                  const fs::path& root = "") {
  EXPECT_EQ(run.exit_code, exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(lines_that_begin(run.err, "halograd: error: "), 1) << run.err;
  for (const std::string& word : words) {
    EXPECT_NE(run.err.find(word), std::string::npos) << word << " is not in: " << run.err;
  }
  EXPECT_EQ(root.empty() ? std::vector<std::string>{} : leftovers(root), std::vector<std::string>{});
}

ProgramRun timed(const std::function<ProgramRun()>& work, double limit = 30) {
  const auto begin = std::chrono::steady_clock::now();
  ProgramRun run = work();
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), limit) << run.err;
  return run;
}

// --- Command line and configuration -------------------------------------------------------------------------------

struct Wrong {
  const char* options;
  std::vector<std::string> words;
  int ranks = 0;
};
void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.options;
}

class WrongConfiguration : public testing::TestWithParam<Wrong> {};

TEST_P(WrongConfiguration, IsRefusedBeforeAnythingIsWritten) {
  const TemporaryDirectory directory;
  const ProgramRun run = timed([&] { return train(GetParam().ranks, directory / "run", GetParam().options); });
  expect_fault(run, 2, GetParam().words);
  EXPECT_FALSE(fs::exists(directory / "run"));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongConfiguration,
    testing::Values(Wrong{"--set train.epoch=3", {"train.epoch", "did you mean train.epochs"}},
                    Wrong{"--set trian.epochs=3", {"[trian]", "did you mean [train]"}},
                    Wrong{"--set train.epochs=many", {"train.epochs", "expected an integer", "many"}},
                    Wrong{"--set train.epochs=0", {"train.epochs = 0", "at least 1"}},
                    Wrong{"--set train.batch_size=0", {"train.batch_size = 0", "at least 1"}, 2},
                    Wrong{"--set train.batch_size=2.5", {"train.batch_size", "expected an integer"}},
                    Wrong{"--set train.learning_rate=-1", {"train.learning_rate", "above 0"}},
                    Wrong{"--set train.learning_rate=nan", {"train.learning_rate", "above 0"}},
                    Wrong{"--set train.learning_rate=inf", {"train.learning_rate", "above 0"}},
                    Wrong{"--set train.optimizer=lion", {"train.optimizer", "lion", "adam"}},
                    Wrong{"--set train.precision=fp16", {"train.precision", "fp16", "bf16"}},
                    Wrong{"--set data.split=[0.5,0.6,0.1]", {"data.split", "adding up to 1"}},
                    Wrong{"--set data.split=[0.5]", {"data.split", "3 numbers"}},
                    Wrong{"--set model.width=40", {"model.width = 40", "multiple of 16"}},
                    Wrong{"--set model.width=1000000000000", {"model.width", "multiple of 8", "65536"}},
                    Wrong{"--set model.width=-32", {"model.width = -32", "multiple of 8"}},
                    Wrong{"--set model.dropout_keep=0", {"model.dropout_keep", "above 0"}},
                    Wrong{"--set model.name=unet3d", {"data.format", "lits", "unet3d"}},
                    Wrong{"--max-steps -1", {"--max-steps", "-1"}}, Wrong{"--max-steps many", {"--max-steps", "many"}},
                    Wrong{"--grid 2x1", {"2x1", "DEPTHxHEIGHTxWIDTH"}}, Wrong{"--grid 2x1x1", {"2x1x1", "1 rank"}},
                    Wrong{"--grid 3x1x1", {"3x1x1", "2 ranks"}, 2},
                    Wrong{"--grid 3x1x1", {"3x1x1", "multiple of 3", "4"}, 4},
                    Wrong{"--resume", {"holds no run to resume", "--resume"}, 2}));

TEST(Configuration, NamesFileAndLine) {
  const TemporaryDirectory directory;
  const fs::path config = directory / "wrong.toml";
  write_file(config, "[train]\nepochs = 3\nbatchsize = 2\n");
  expect_fault(run_ranks(2, "train " + config.string()), 2,
               {"wrong.toml:3", "train.batchsize", "did you mean train.batch_size"});
  write_file(config, "[train\n");
  expect_fault(run_ranks(0, "train " + config.string()), 2, {"wrong.toml:1", "not TOML"});
  expect_fault(run_ranks(2, "train " + (directory / "none.toml").string()), 2, {"none.toml", "No such file"});
}

TEST(Configuration, MustBeTheSameOnEveryRank) {
  const TemporaryDirectory directory;
  const ProgramRun run = timed([&] {
    return run_apart(train_arguments(directory / "run"),
                     train_arguments(directory / "run", "--set train.batch_size=3"));
  });
  expect_fault(run, 2, {"train.batch_size is 2 on rank 0 and 3 on rank 1"});
  EXPECT_FALSE(fs::exists(directory / "run"));
}

// --- Data ---------------------------------------------------------------------------------------------------------

std::string with_data(const fs::path& set, const std::string& more = "") {
  return fmt::format("--set data.path={} --set train.checkpoint_every_steps=0 {}", set.string(), more);
}

TEST(DataFolder, MustBeThereAndHoldFiles) {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  for (const int ranks : {0, 2}) {
    expect_fault(timed([&] { return train(ranks, run, with_data(directory / "none")); }), 3,
                 {(directory / "none").string(), "no such directory"});
  }
  expect_fault(train(0, run, with_data(directory.path())), 3, {directory.path().string(), "holds no samples"});
  expect_fault(train(4, run, with_data(directory.path())), 3, {directory.path().string(), "holds no samples"});
  expect_fault(train(0, run, with_data(Universes::shared().config())), 3, {"small.toml", "not a directory"});
  EXPECT_FALSE(fs::exists(run));
}

struct WrongFile {
  const char* name;
  std::function<void(const fs::path&)> make;
  std::vector<std::string> words;
  int ranks = 0;
};
void PrintTo(const WrongFile& wrong, std::ostream* out) {
  *out << wrong.name;
}

class WrongSample : public testing::TestWithParam<WrongFile> {};

/// A copy of the universes with one of them made anew.
void copy_with(const fs::path& set, int number, const std::function<void(const fs::path&)>& make) {
  fs::copy(Universes::shared().set(), set);
  const fs::path file = set / Universes::shared().file(number).filename();
  fs::remove(file);
  make(file);
}

TEST_P(WrongSample, EndsAllRanksWherever) {
  const TemporaryDirectory directory;
  const std::string file = Universes::shared().file(5).filename().string();
  copy_with(directory / "set", 5, GetParam().make);
  std::vector<std::string> words = GetParam().words;
  words.push_back((directory / "set" / file).string());
  // A wrong file is found before the first step, a wrong voxel when it is read: with one mini-batch a universe at a
  // step behind the first, or at the validation.
  const int ranks = GetParam().ranks;
  const std::string options = fmt::format("--grid {}x1x1 --set train.batch_size=1", std::max(ranks, 1));
  const ProgramRun run = timed([&] { return train(ranks, directory / "run", with_data(directory / "set", options)); });
  expect_fault(run, 3, words, directory / "run");
  // The only one: found at once, and then nothing is written.
  fs::create_directory(directory / "alone");
  GetParam().make(directory / "alone" / file);
  const ProgramRun alone = train(0, directory / "alone_run", with_data(directory / "alone"));
  expect_fault(alone, 3, GetParam().words, directory / "alone_run");
}

SampleContents wrong(const std::function<void(SampleContents&)>& change) {
  SampleContents contents;
  change(contents);
  return contents;
}

std::function<void(const fs::path&)> holding(const std::function<void(SampleContents&)>& change) {
  return [=](const fs::path& file) { write_contents(file, wrong(change)); };
}

void cut_short(const fs::path& file) {
  fs::copy_file(Universes::shared().file(0), file);
  fs::resize_file(file, fs::file_size(file) / 2);
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongSample,
    testing::Values(
        WrongFile{"no voxels", holding([](auto& c) { c.voxels = "voxels"; }), {"no dataset `full`", "[32,32,32,4]"}},
        WrongFile{"no targets", holding([](auto& c) { c.targets = "targets"; }), {"no dataset `unitPar`", "[4]"}},
        WrongFile{"another shape",
                  holding([](auto& c) {
                    c.shape = {16, 16, 16, 4};
                  }),
                  {"[16,16,16,4]", "[32,32,32,4]"},
                  2},
        WrongFile{"another type", holding([](auto& c) { c.type = H5T_STD_I32LE; }), {"i32", "16-bit integers"}},
        WrongFile{"a voxel that is no number",
                  holding([](auto& c) {
                    c.type = H5T_IEEE_F32LE;
                    c.number_missing = true;
                  }),
                  {"`full`", "not finite"},
                  2},
        WrongFile{"a voxel that has no logarithm",
                  holding([](auto& c) {
                    c.type = H5T_STD_I16LE;
                    c.value = -7;
                  }),
                  {"`full` holds -7", "log1p", "data.transform"}},
        WrongFile{"a target that is no number", holding([](auto& c) { c.target_missing = true; }), {"`unitPar`[1]"}},
        WrongFile{"cut short", cut_short, {"cut short"}, 2},
        WrongFile{"text", [](const fs::path& file) { write_file(file, "no HDF5"); }, {"not an HDF5 file"}},
        WrongFile{"empty", [](const fs::path& file) { write_file(file, ""); }, {"not an HDF5 file"}},
        WrongFile{"a folder", [](const fs::path& file) { fs::create_directory(file); }, {"not a file"}},
        WrongFile{
            "a dangling link", [](const fs::path& file) { fs::create_symlink("/no/such", file); }, {"no such file"}}));

TEST(WrongSampleOnOneRank, EndsAllAndIsNamed) {
  const TemporaryDirectory directory;  // as on two nodes, each with its own disk
  copy_with(directory / "set", 5, cut_short);
  const ProgramRun run = timed([&] {
    return run_apart(
        train_arguments(directory / "run", "--grid 2x1x1"),
        train_arguments(directory / "run", "--grid 2x1x1 --set data.path=" + (directory / "set").string()));
  });
  expect_fault(run, 3, {"universe_00005.hdf5", "cut short", "(rank 1)"}, directory / "run");
}

TEST(DataFolderOnOneRank, MissesAFileAndIsNamed) {
  const TemporaryDirectory directory;
  copy_with(directory / "set", 5, [](const fs::path&) {});
  const ProgramRun run = timed([&] {
    return run_apart(train_arguments(directory / "run"),
                     train_arguments(directory / "run", "--set data.path=" + (directory / "set").string()));
  });
  expect_fault(run, 3, {"rank 1", "11 files", "12 files"});
  EXPECT_FALSE(fs::exists(directory / "run"));
}

// --- The run directory --------------------------------------------------------------------------------------------

TEST(UnwritableRunDirectory, EndsAllRanks) {
  const TemporaryDirectory directory;
  write_file(directory / "file", "");
  expect_fault(train(2, directory / "file" / "run"), 5, {(directory / "file" / "run").string(), "cannot write"});
  expect_fault(train(0, "/proc/halograd/run"), 5, {"/proc/halograd/run", "cannot write"});
}

TEST(RunDirectoryInUse, IsNotOverwritten) {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  const std::string few = "--max-steps 1 --set train.checkpoint_every_steps=0 ";
  ASSERT_EQ(train(0, run, few).exit_code, 0);
  const std::string metrics = read_file(run / "metrics.jsonl");
  const std::string config = read_file(run / "config.toml");
  expect_fault(train(0, run), 2, {"already holds a run", "--resume"});
  expect_fault(train(2, run, "--resume --set train.batch_size=3"), 2, {"train.batch_size: 2 -> 3"});
  expect_fault(train(0, run, "--resume --set train.optimizer=sgd"), 2, {"train.optimizer"});
  expect_fault(train(0, run, "--resume --set model.batch_norm=false"), 2, {"model.batch_norm: true -> false"});
  expect_fault(train(0, run, "--resume --set train.seed=9"), 2, {"train.seed: 1 -> 9"});
  copy_with(directory / "set", 5, [](const fs::path&) {});
  expect_fault(train(0, run, "--resume --set data.path=" + (directory / "set").string()), 3, {"11 samples", "12"});
  for (const int step : {0, 1}) {
    fs::resize_file(checkpoint(run, step), fs::file_size(checkpoint(run, step)) - 1);
  }
  expect_fault(train(2, run, "--resume"), 3, {"none of its 2 checkpoints can be read"});
  EXPECT_EQ(read_file(run / "metrics.jsonl"), metrics);
  EXPECT_EQ(read_file(run / "config.toml"), config);
}

// --- Checkpoints --------------------------------------------------------------------------------------------------

TEST(WrongCheckpoint, IsRefusedByEveryCommand) {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  ASSERT_EQ(train(0, run, "--max-steps 0").exit_code, 0);
  const fs::path good = checkpoint(run, 0);
  const std::string config = Universes::shared().config().string();
  const auto evaluate = [&](int ranks, const fs::path& file, const std::string& more = "") {
    return run_ranks(ranks, fmt::format("evaluate {} --checkpoint {} {}", config, file.string(), more));
  };
  const auto predict = [&](int ranks, const fs::path& file, const fs::path& input, const fs::path& output) {
    return run_ranks(ranks, fmt::format("predict {} --checkpoint {} --input {} --output {}", config, file.string(),
                                        input.string(), output.string()));
  };
  const fs::path input = Universes::shared().file(0);
  const fs::path output = directory / "out.json";
  for (const int ranks : {0, 2}) {
    expect_fault(evaluate(ranks, good, "--set model.batch_norm=false"), 3,
                 {good.string(), "another model", "/model/bn1"});
    expect_fault(predict(ranks, good, directory / "none.hdf5", output), 3, {"none.hdf5", "no such file"});
    expect_fault(predict(ranks, good, input, "/proc/halograd.json"), 5, {"/proc/halograd.json"});
  }
  expect_fault(evaluate(0, directory / "none.h5"), 3, {"none.h5", "no such file"});
  expect_fault(evaluate(0, input), 3, {input.string(), "another model"});
  expect_fault(predict(0, directory / "none.h5", input, output), 3, {"none.h5"});
  expect_fault(predict(0, good, good, output), 3, {good.string(), "no dataset `full`"});
  expect_fault(predict(0, good, input, directory.path()), 5, {directory.path().string()}, directory.path());
  EXPECT_FALSE(fs::exists(directory.path().string() + ".partial"));
  expect_fault(evaluate(0, good, "--split tset"), 2, {"--split", "tset", "validation"});
  expect_fault(evaluate(0, good, "--set data.split=[1,0,0]"), 3, {"data.split", "test"});
  expect_fault(
      train(2, directory / "other", "--set model.batch_norm=false --set train.initial_checkpoint=" + good.string()), 3,
      {good.string(), "another model"}, directory / "other");
  fs::resize_file(good, fs::file_size(good) / 3);
  expect_fault(evaluate(2, good), 3, {good.string(), "cut short"});
  expect_fault(predict(0, good, input, output), 3, {good.string(), "cut short"});
  EXPECT_FALSE(fs::exists(output));
}

// --- Numbers ------------------------------------------------------------------------------------------------------

TEST(LossThatIsNotFinite, EndsAllRanksAndKeepsAGoodCheckpoint) {
  for (const auto& [ranks, optimizer] : {std::pair{2, "sgd"}, std::pair{0, "adam"}}) {
    const TemporaryDirectory directory;
    const fs::path run = directory / "run";
    const ProgramRun ended = timed([&] {
      return train(ranks, run,
                   fmt::format("--set train.learning_rate=1e30 --set train.optimizer={} --set "
                               "train.checkpoint_every_steps=1 --set model.batch_norm=false",
                               optimizer));
    });
    expect_fault(ended, 4, {"train.learning_rate", "last good checkpoint"}, run);
    const fs::path first = checkpoint(run, 0);
    EXPECT_EQ(read_checkpoint_state(first).step, 0);
    // Every checkpoint that may be resumed from reads, and its weights give a finite loss.
    for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
      if (entry.path().extension() != ".h5") continue;
      const ProgramRun found =
          run_ranks(0, fmt::format("evaluate {} --checkpoint {} --json --set model.batch_norm=false",
                                   Universes::shared().config().string(), entry.path().string()));
      EXPECT_EQ(found.exit_code, 0) << found.err;
    }
    const ProgramRun resumed =
        train(0, run,
              fmt::format("--resume --max-steps 2 --set train.learning_rate=1e-4 --set train.optimizer={} "
                          "--set model.batch_norm=false",
                          optimizer));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  }
}

}  // namespace
}  // namespace halograd
