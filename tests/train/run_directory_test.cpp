#include "halograd/train/run_directory.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

using test::message_of;
namespace fs = std::filesystem;

TEST(RunDirectory, default_is_named_after_the_configuration) {
  EXPECT_EQ(RunDirectory::default_path("configs/small.toml"), fs::path("runs/small"));
}

TEST(RunDirectory, a_fresh_run_gets_its_files) {
  const test::TemporaryDirectory directory;
  const RunDirectory run(directory / "deep/er/run");
  Config config;
  config.train.epochs = 3;
  EXPECT_FALSE(RunDirectory::holds_run(run.root()));
  run.open(RunStart::fresh, config);
  EXPECT_TRUE(RunDirectory::holds_run(run.root()));
  EXPECT_EQ(load_config(run.config_file()), config);
  EXPECT_TRUE(fs::is_directory(run.checkpoints()));
  log::info("a line for the file");
  EXPECT_NE(test::read_file(run.log_file()).find("info a line for the file\n"), std::string::npos);
}

TEST(RunDirectory, a_second_run_in_it_needs_resume) {
  const test::TemporaryDirectory directory;
  const RunDirectory run(directory / "run");
  run.open(RunStart::fresh, Config{});
  EXPECT_EQ(message_of<UsageError>([&] { run.open(RunStart::fresh, Config{}); }),
            run.root().string() + " already holds a run: use --resume to go on with it, or another --run-dir");
  Config longer;
  longer.train.epochs = 200;
  run.open(RunStart::resume, longer);
  EXPECT_EQ(load_config(run.config_file()).train.epochs, 200);
  const RunDirectory none(directory / "none");
  EXPECT_EQ(message_of<UsageError>([&] { none.open(RunStart::resume, Config{}); }),
            none.root().string() + " holds no run to resume: leave --resume out, or name the run's --run-dir");
  EXPECT_FALSE(fs::exists(none.root()));
}

TEST(RunDirectory, one_that_cannot_be_written_is_named) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "file", "");
  const RunDirectory below_file(directory / "file/run");
  EXPECT_EQ(message_of<ResourceError>([&] { below_file.open(RunStart::fresh, Config{}); }),
            "cannot write to the run directory " + below_file.root().string() + ": Not a directory");
  const RunDirectory run(directory / "run");
  fs::create_directories(run.root() / "config.toml.partial");  // in the way of the file
  const std::string message = message_of<ResourceError>([&] { run.open(RunStart::fresh, Config{}); });
  EXPECT_TRUE(message.starts_with("cannot write to the run directory " + run.root().string() + ": ")) << message;
}

}  // namespace
}  // namespace halograd
