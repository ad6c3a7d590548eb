#include "cli/broken_samples.hpp"
#include "cli/training_under_way.hpp"
#include "halograd/data/owner_map.hpp"
#include "halograd/train/run_schedule.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

// Opening a data set looks into every file, so these faults are made while the program trains.

namespace halograd {
namespace {

namespace fs = std::filesystem;
using namespace test;

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

// --- The data set's files -----------------------------------------------------------------------------------------

Dataset dataset_of(const fs::path& set) {
  return Dataset::open(Communicator::self(),
                       {.path = set, .shape = {4, Extent::cube(32)}, .split = set_fractions, .seed = 1});
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
      EXPECT_LT(done, epoch_steps);
      break;
    case Phase::later_epoch:
      EXPECT_GT(done, epoch_steps);
      EXPECT_LT(done, 2 * epoch_steps);
      break;
    case Phase::validation:
      EXPECT_EQ(done, epoch_steps);
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
  ASSERT_TRUE(wait_for_steps(training.run, late ? epoch_steps + 1 : 1)) << read_file(training.err);
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

}  // namespace
}  // namespace halograd
