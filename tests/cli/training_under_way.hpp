#pragma once

#include "cli/training_runs.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace halograd::test {

// A copied set of samples: its files, and how they are split: 24 to train on, 12 to validate, 12 to test.
inline constexpr int set_files = 48;
inline constexpr std::array<double, 3> set_fractions{0.5, 0.25, 0.25};
inline constexpr std::size_t epoch_steps = 12;  // in mini-batches of 2
inline constexpr double seconds_allowed = 10;   // from a fault to the end of all ranks

inline void copy_set(const std::filesystem::path& to) {
  std::filesystem::create_directory(to);
  for (int i = 0; i < set_files; ++i) {
    std::filesystem::copy_file(Universes::shared().file(i % 12), to / fmt::format("sample_{:03}.hdf5", i));
  }
}

inline std::string settings(const std::filesystem::path& set, int batch, int epochs, const std::string& more) {
  return fmt::format(
      "--set data.path={} --set data.split=[{},{},{}] --set train.batch_size={} --set train.epochs={} "
      "--set train.checkpoint_every_steps=0 {}",
      set.string(), set_fractions[0], set_fractions[1], set_fractions[2], batch, epochs, more);
}

/// The processes whose command line has this text in it.
inline std::vector<std::string> processes_with(const std::string& text) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (read_file(entry.path() / "cmdline").find(text) != std::string::npos) found.push_back(name);
  }
  return found;
}

/// A training run of a copied set in the background; what it says and how long it takes to end.
struct UnderWay {
  TemporaryDirectory directory;
  std::filesystem::path set = directory / "set";
  std::filesystem::path run = directory / "run";
  std::string err = (directory / "err").string();
  std::optional<BackgroundRun> program;
  std::chrono::steady_clock::time_point disturbed;

  UnderWay() { copy_set(set); }

  void start(int ranks, const std::string& options) {
    program.emplace(command_line(ranks, train_arguments(run, options)), err);
  }
  /// The last rank reads another copy of the set: as on two nodes, each with its own disk. Returns that copy.
  std::filesystem::path start_apart(int ranks, const std::string& options) {
    const std::filesystem::path other = directory / "other_set";
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
    const std::optional<int> status = program->wait(seconds_allowed);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - disturbed).count();
    const std::string said = read_file(err);
    ASSERT_TRUE(status.has_value()) << "goes on after " << seconds_allowed << " s: " << said;
    testing::Test::RecordProperty("seconds_to_end", fmt::format("{:.2f}", seconds));
    EXPECT_LT(seconds, seconds_allowed);
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

}  // namespace halograd::test
