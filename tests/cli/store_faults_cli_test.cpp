#include "cli/training_under_way.hpp"
#include "halograd/data/dataset.hpp"

#include <sys/mount.h>
#include <sys/resource.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What the store of samples does where its disk is full or missing, and what it leaves behind.

namespace halograd {
namespace {

namespace fs = std::filesystem;
using namespace test;

TEST(StoreOnAFullDisk, IsRefusedBeforeTheFirstStep) {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "store");
  const std::string arguments = train_arguments(
      directory / "run", "--set data.store=disk --set data.store_dir=" + (directory / "store").string());
  const ProgramRun run =
      run_command(fmt::format("sh -c 'ulimit -f 1024 && OMP_NUM_THREADS=1 exec {} {}'", HALOGRAD_PROGRAM, arguments));
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_EQ(lines_that_begin(run.err, "halograd: error: "), 1) << run.err;
  // Nine universes of 256 KiB.
  for (const std::string& word : {std::string("needs 2.25 MiB"), (directory / "store").string(),
                                  std::string("File too large"), std::string("data.store_dir")}) {
    EXPECT_NE(run.err.find(word), std::string::npos) << word << ": " << run.err;
  }
  EXPECT_TRUE(events(directory / "run", "step").empty());
  EXPECT_TRUE(fs::is_empty(directory / "store"));
}

/// A small file system in memory; not to be had without the right to mount.
class SmallDisk {
public:
  SmallDisk(fs::path place, const std::string& size) : place_(std::move(place)) {
    fs::create_directory(place_);
    mounted_ = mount("none", place_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(place_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }

private:
  fs::path place_;
  bool mounted_ = false;
};

TEST(StoreOnAFullDisk, OfOneRankEndsAll) {
  const TemporaryDirectory directory;
  const fs::path store = directory / "store";
  const SmallDisk disk(store, "1600k");  // each of two ranks needs 1,152 KiB
  if (!disk.mounted()) GTEST_SKIP() << "may not mount";
  const ProgramRun run =
      train(2, directory / "run", "--grid 2x1x1 --set data.store=disk --set data.store_dir=" + store.string());
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_EQ(lines_that_begin(run.err, "halograd: error: "), 1) << run.err;
  for (const char* word : {"needs 1.12 MiB", "free for the 2 rank(s)", "No space left"}) {
    EXPECT_NE(run.err.find(word), std::string::npos) << word << ": " << run.err;
  }
  EXPECT_TRUE(events(directory / "run", "step").empty());
  EXPECT_TRUE(fs::is_empty(store));
}

TEST(StoreThatSpills, NeedsItsDirectory) {
  const TemporaryDirectory directory;
  const std::string options = "--grid 2x1x1 --set data.store_dir=/nowhere --set data.store_budget=";
  const ProgramRun run = train(2, directory / "run", options + "600KiB");  // of 1,152 a rank
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_EQ(lines_that_begin(run.err, "halograd: error: "), 1) << run.err;
  EXPECT_NE(run.err.find("/nowhere"), std::string::npos) << run.err;
  EXPECT_TRUE(events(directory / "run", "step").empty());
}

/// Where space cannot be promised the disk may be full when it comes to writing: on the last rank here.
TEST(StoreWhoseDiskFillsUp, EndsAllRanksAndIsNamed) {
  for (const auto& [ranks, first_written] : {std::pair{2, Split::train}, {4, Split::validation}}) {
    UnderWay training;
    const fs::path store = training.directory / "store";
    fs::create_directory(store);
    training.start(ranks, settings(training.set, 2, 2,
                                   "--grid 2x1x1 --set data.store=disk --set data.store_dir=" + store.string()));
    ASSERT_TRUE(wait_for_steps(training.run, 1));
    const std::vector<pid_t> processes = training.program->children();
    ASSERT_EQ(processes.size(), static_cast<std::size_t>(ranks));
    // Half a universe of each sample; one of two groups writes half of an epoch's 24.
    const rlim_t bytes = first_written == Split::train ? 8 * 131072 : 12 * 131072;
    const rlimit allowed{bytes, bytes};
    training.disturb([&] { prlimit(processes.back(), RLIMIT_FSIZE, &allowed, nullptr); });
    training.expect_end(5, {store.string(), "File too large", fmt::format("(rank {})", ranks - 1)});
    if (first_written == Split::train) {
      EXPECT_LT(training.count("step"), epoch_steps);
    } else {
      EXPECT_EQ(training.count("step"), epoch_steps);
    }
    EXPECT_EQ(training.count("epoch"), 0U);
    EXPECT_TRUE(fs::is_empty(store));
  }
}

TEST(StoreAfterControlC, LeavesNothingAndTheRunCanBeResumed) {
  UnderWay training;
  const fs::path store = training.directory / "store";
  fs::create_directory(store);
  const std::string options = settings(training.set, 2, 1,
                                       "--grid 1x1x1 --set data.store=disk --set train.checkpoint_every_steps=4 "
                                       "--set data.store_dir=" +
                                           store.string());
  training.start(2, options);
  ASSERT_TRUE(wait_for_steps(training.run, 5));
  const std::vector<pid_t> processes = training.program->children();
  ASSERT_EQ(processes.size(), 2U);
  training.program->signal(SIGINT);
  for (const pid_t process : processes) kill(process, SIGINT);  // mpirun alone takes a second to pass it on
  const std::optional<int> status = training.program->wait(seconds_allowed);
  ASSERT_TRUE(status.has_value()) << "goes on after the signal";
  EXPECT_NE(*status, 0);
  EXPECT_LT(training.count("step"), epoch_steps);
  EXPECT_TRUE(fs::is_empty(store));
  for (const pid_t process : processes) {
    for (const auto& segment : fs::directory_iterator("/dev/shm")) {
      EXPECT_FALSE(segment.path().filename().string().starts_with(fmt::format("halograd-{}-", process)));
    }
  }
  const ProgramRun resumed = train(2, training.run, options + " --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const fs::path plain = training.directory / "plain";
  ASSERT_EQ(train(2, plain, options).exit_code, 0);
  EXPECT_EQ(results(training.run), results(plain));
  EXPECT_TRUE(fs::is_empty(store));
}

}  // namespace
}  // namespace halograd
