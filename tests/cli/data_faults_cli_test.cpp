#include "cli/broken_samples.hpp"
#include "cli/training_runs.hpp"
#include "halograd/data/owner_map.hpp"
#include "halograd/train/run_schedule.hpp"

#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <set>

// Opening a data set looks into every file, so these faults are made while the program trains.

namespace halograd {
namespace {

namespace fs = std::filesystem;
using namespace test;

constexpr int files = 48;
constexpr std::array<double, 3> fractions{0.5, 0.25, 0.25};  // 24 to train on, 12 to validate, 12 to test
constexpr double limit = 10;                                 // seconds from the fault to the end of all ranks

// --- What happens to a file ---------------------------------------------------------------------------------------

using Damage = void (*)(const fs::path& file);

void remove_it(const fs::path& file) {
  fs::remove(file);
}

void cut_in_half(const fs::path& file) {
  fs::resize_file(file, fs::file_size(file) / 2);
}

void make_a_directory(const fs::path& file) {
  fs::remove(file);
  fs::create_directory(file);
}

void fill_with_garbage(const fs::path& file) {
  write_file(file, std::string(fs::file_size(file), '\x5a'));
}

/// Puts another file in its place; all of one shape are the same one, so that it takes no time.
void replace_by(const fs::path& file, const std::vector<hsize_t>& shape) {
  const fs::path other = file.parent_path() / "other";
  if (!fs::exists(other)) {
    SampleContents contents;
    contents.shape = shape;
    write_contents(other, contents);
  }
  fs::remove(file);
  fs::create_hard_link(other, file);
}

void make_smaller(const fs::path& file) {
  replace_by(file, {16, 16, 16, 4});
}

void turn_axes(const fs::path& file) {
  replace_by(file, {4, 32, 32, 32});
}

void forbid_reading(const fs::path& file) {
  fs::permissions(file, fs::perms::none);
}

// --- The data set and its schedule --------------------------------------------------------------------------------

void copy_set(const fs::path& to) {
  fs::create_directory(to);
  for (int i = 0; i < files; ++i) {
    fs::copy_file(Universes::shared().file(i % 12), to / fmt::format("sample_{:03}.hdf5", i));
  }
}

Dataset dataset_of(const fs::path& set) {
  return Dataset::open(Communicator::self(),
                       {.path = set, .shape = {4, Extent::cube(32)}, .split = fractions, .seed = 1});
}

std::vector<fs::path> files_of(const fs::path& set, Split split) {
  const Dataset dataset = dataset_of(set);
  std::vector<fs::path> found;
  for (const std::int64_t sample : dataset.samples(split)) found.emplace_back(dataset.file(sample));
  return found;
}

std::vector<fs::path> all_files_of(const fs::path& set) {
  std::vector<fs::path> found;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    for (const fs::path& file : files_of(set, split)) found.push_back(file);
  }
  return found;
}

std::string settings(const fs::path& set, int batch, int epochs, const std::string& more) {
  return fmt::format(
      "--set data.path={} --set data.split=[{},{},{}] --set train.batch_size={} --set train.epochs={} "
      "--set train.checkpoint_every_steps=0 {}",
      set.string(), fractions[0], fractions[1], fractions[2], batch, epochs, more);
}

// --- A run and its end --------------------------------------------------------------------------------------------

/// The processes whose command line has this text in it.
std::vector<std::string> processes_with(const std::string& text) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (read_file(entry.path() / "cmdline").find(text) != std::string::npos) found.push_back(name);
  }
  return found;
}

/// A training run of a copied set in the background; what it says and how long it takes to end.
struct UnderWay {
  TemporaryDirectory directory;
  fs::path set = directory / "set";
  fs::path run = directory / "run";
  std::string err = (directory / "err").string();
  std::optional<BackgroundRun> program;
  std::chrono::steady_clock::time_point disturbed;

  UnderWay() { copy_set(set); }

  void start(int ranks, const std::string& options) {
    program.emplace(command_line(ranks, train_arguments(run, options)), err);
  }
  /// The last rank reads another copy of the set: as on two nodes, each with its own disk. Returns that copy.
  fs::path start_apart(int ranks, const std::string& options) {
    const fs::path other = directory / "other_set";
    copy_set(other);
    program.emplace(command_line_apart(ranks, train_arguments(run, options),
                                       train_arguments(run, options + " --set data.path=" + other.string())),
                    err);
    return other;
  }
  void disturb(const std::function<void()>& how) {
    how();
    disturbed = std::chrono::steady_clock::now();
  }
  /// Every rank ends soon, with one line that says `words`.
  void expect_end(int exit_code, const std::vector<std::string>& words) {
    const std::optional<int> status = program->wait(limit);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - disturbed).count();
    const std::string said = read_file(err);
    ASSERT_TRUE(status.has_value()) << "goes on after " << limit << " s: " << said;
    testing::Test::RecordProperty("seconds_to_end", fmt::format("{:.2f}", seconds));
    EXPECT_LT(seconds, limit);
    EXPECT_TRUE(WIFEXITED(*status));
    EXPECT_EQ(WEXITSTATUS(*status), exit_code) << said;
    EXPECT_EQ(lines_that_begin(said, "halograd: error: "), 1) << said;
    const std::size_t begin = said.find("halograd: error: ");
    const std::string line = begin == std::string::npos ? "" : said.substr(begin, said.find('\n', begin) - begin);
    for (const std::string& word : words) EXPECT_NE(line.find(word), std::string::npos) << word << ": " << line;
    EXPECT_EQ(processes_with(run.string()), std::vector<std::string>{});
    EXPECT_EQ(leftovers(run), std::vector<std::string>{});
  }
  [[nodiscard]] std::size_t count(const std::string& kind) const { return events(run, kind).size(); }
};

// --- A file changes under all ranks -------------------------------------------------------------------------------

enum class Phase { first_epoch, later_epoch, validation, test, last_mini_batch };

struct Fault {
  const char* name;
  Phase phase;
  Damage damage;
  int ranks;
  const char* options;
};
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

class FileFault : public testing::TestWithParam<Fault> {};

constexpr std::size_t steps = 12;  // an epoch's, in mini-batches of 2

std::vector<fs::path> to_damage(const UnderWay& training, Phase phase) {
  if (phase == Phase::validation) return files_of(training.set, Split::validation);
  if (phase == Phase::test) return files_of(training.set, Split::test);
  if (phase == Phase::last_mini_batch) return {files_of(training.set, Split::test).back()};
  return all_files_of(training.set);
}

void expect_phase(const UnderWay& training, Phase phase) {
  const std::size_t done = training.count("step");
  switch (phase) {
    case Phase::first_epoch:
      EXPECT_GE(done, 1U);
      EXPECT_LT(done, steps);
      break;
    case Phase::later_epoch:
      EXPECT_GT(done, steps);
      EXPECT_LT(done, 2 * steps);
      break;
    case Phase::validation:
      EXPECT_EQ(done, steps);
      EXPECT_EQ(training.count("epoch"), 0U);
      break;
    case Phase::test:
    case Phase::last_mini_batch: EXPECT_EQ(training.count("epoch"), 1U); break;
  }
  EXPECT_EQ(training.count("test"), 0U);
}

TEST_P(FileFault, EndsAllRanksAndIsNamed) {
  const Fault& fault = GetParam();
  if (fault.damage == forbid_reading && geteuid() == 0) GTEST_SKIP() << "root reads what is forbidden";
  UnderWay training;
  const std::vector<fs::path> damaged = to_damage(training, fault.phase);
  const bool late = fault.phase == Phase::later_epoch;
  training.start(fault.ranks, settings(training.set, 2, late ? 2 : 1, fault.options));
  ASSERT_TRUE(wait_for_steps(training.run, late ? steps + 1 : 1)) << read_file(training.err);
  training.disturb([&] { std::ranges::for_each(damaged, fault.damage); });
  training.expect_end(3, {training.set.string() + "/sample_", "(rank "});
  expect_phase(training, fault.phase);
  if (fault.phase != Phase::last_mini_batch) return;
  EXPECT_NE(read_file(training.err).find(damaged.front().string()), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, FileFault,
    testing::Values(
        Fault{"gone", Phase::first_epoch, remove_it, 2, "--grid 2x1x1"},
        Fault{"cut short", Phase::first_epoch, cut_in_half, 2, "--grid 1x1x2 --set data.driver=mpi-independent"},
        Fault{"smaller", Phase::first_epoch, make_smaller, 2, "--grid 2x1x1 --set data.driver=mpi-collective"},
        Fault{"other axes, two groups", Phase::first_epoch, turn_axes, 4, "--grid 2x1x1"},
        Fault{"unreadable", Phase::first_epoch, forbid_reading, 2, "--grid 1x1x2"},
        Fault{"garbage", Phase::later_epoch, fill_with_garbage, 2, "--set data.store=off"},
        Fault{"gone", Phase::validation, remove_it, 2, "--grid 2x1x1"},
        Fault{"a directory", Phase::test, make_a_directory, 2, "--grid 2x1x1"},
        Fault{"gone", Phase::last_mini_batch, remove_it, 2, "--grid 1x1x2"}),
    [](const auto& one) { return fmt::format("{}", one.index); });

// --- Some samples come from files, others from another group ------------------------------------------------------

/// Whether, in a run of two groups that begins in the middle of its first epoch, the first mini-batch of the second
/// that reads a file moves samples between the groups too.
bool reads_and_exchanges(const fs::path& set, int batch, int first_batch) {
  const Dataset dataset = dataset_of(set);
  RunSchedule schedule(dataset, {.batch = batch, .seed = 1, .epochs = 2, .first_batch = first_batch});
  OwnerMap owners(dataset.size(), 2);
  while (const auto next = schedule.next()) {
    const std::vector<SampleMove> moves = owners.next(next->samples, next->split != Split::test);
    if (next->epoch == 0) continue;
    const auto read = [](const SampleMove& m) { return m.from == SampleMove::file; };
    const auto moved = [&](const SampleMove& m) { return !read(m) && m.from != m.to; };
    if (std::ranges::any_of(moves, read)) return std::ranges::any_of(moves, moved);
  }
  return false;
}

TEST(FileFaultDuringTheExchange, EndsAllRanksAndIsNamed) {
  UnderWay training;
  ASSERT_TRUE(reads_and_exchanges(training.set, 8, 1));
  const std::string options = settings(training.set, 8, 2, "--grid 2x1x1");
  const ProgramRun begun = train(4, training.run, options + " --max-steps 1");
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  const std::vector<fs::path> damaged = files_of(training.set, Split::train);
  training.start(4, options + " --resume");
  ASSERT_TRUE(wait_for_steps(training.run, 3));  // the end of the first epoch
  training.disturb([&] { std::ranges::for_each(damaged, remove_it); });
  training.expect_end(3, {training.set.string() + "/sample_", "(rank "});
  EXPECT_EQ(training.count("epoch"), 1U);
}

// --- A file changes under one rank --------------------------------------------------------------------------------

struct Alone {
  const char* name;
  Damage damage;
  int ranks;
  const char* options;
};
void PrintTo(const Alone& alone, std::ostream* out) {
  *out << alone.name;
}

class FileFaultOnOneRank : public testing::TestWithParam<Alone> {};

TEST_P(FileFaultOnOneRank, EndsAllRanksAndIsNamed) {
  const Alone& alone = GetParam();
  if (alone.damage == forbid_reading && geteuid() == 0) GTEST_SKIP() << "root reads what is forbidden";
  UnderWay training;
  // Several samples a mini-batch, so that the reading goes on behind the one that failed.
  const fs::path other = training.start_apart(alone.ranks, settings(training.set, 4, 4, alone.options));
  const std::vector<fs::path> damaged = all_files_of(other);
  ASSERT_TRUE(wait_for_steps(training.run, 1)) << read_file(training.err);
  training.disturb([&] { std::ranges::for_each(damaged, alone.damage); });
  training.expect_end(3, {other.string() + "/sample_", fmt::format("(rank {})", alone.ranks - 1)});
  EXPECT_LT(training.count("step"), 6U);  // of an epoch
}

INSTANTIATE_TEST_SUITE_P(All, FileFaultOnOneRank,
                         testing::Values(Alone{"gone", remove_it, 2, "--grid 2x1x1"},
                                         Alone{"smaller, on disk, collective", make_smaller, 2,
                                               "--grid 2x1x1 --set data.store=disk --set data.driver=mpi-collective"},
                                         Alone{"a directory, the second group's only", make_a_directory, 4,
                                               "--grid 2x1x1 --set data.store=disk"},
                                         Alone{"unreadable", forbid_reading, 2, "--grid 2x1x1"}),
                         [](const auto& one) { return fmt::format("{}", one.index); });

// --- The store's disk ---------------------------------------------------------------------------------------------

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
      EXPECT_LT(training.count("step"), steps);
    } else {
      EXPECT_EQ(training.count("step"), steps);
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
  const std::optional<int> status = training.program->wait(limit);
  ASSERT_TRUE(status.has_value()) << "goes on after the signal";
  EXPECT_NE(*status, 0);
  EXPECT_LT(training.count("step"), steps);
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
