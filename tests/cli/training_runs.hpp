#pragma once

#include "cli/program.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace halograd::test {

using Json = nlohmann::json;

/// Twelve small universes and a configuration for them, made once for all tests: 7 to train on, 2 to validate, 3 to
/// test; in mini-batches of 2, the last of an epoch holds 1. Three epochs are 12 steps.
class Universes {
public:
  static const Universes& shared() {
    static const Universes made;
    return made;
  }
  [[nodiscard]] std::filesystem::path set() const { return directory_ / "universes"; }
  [[nodiscard]] std::filesystem::path config() const { return directory_ / "small.toml"; }
  [[nodiscard]] std::filesystem::path file(int number) const {
    return set() / fmt::format("universe_{:05}.hdf5", number);
  }

private:
  Universes() {
    const ProgramRun made = run_halograd("synth cosmoflow --count 12 --width 32 --out " + set().string());
    if (made.exit_code != 0) throw std::runtime_error("no universes: " + made.err);
    write_file(config(), fmt::format("[model]\nwidth = 32\n[data]\npath = \"{}\"\nsplit = [0.58, 0.17, 0.25]\n"
                                     "[train]\nepochs = 3\nbatch_size = 2\nlearning_rate = 1e-4\n"
                                     "checkpoint_every_epochs = 0\ncheckpoint_every_steps = 3\n",
                                     set().string()));
  }
  TemporaryDirectory directory_;
};

inline std::string mpirun_with(const std::string& what) {
  return fmt::format(
      "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
      "OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1 {} {}",
      HALOGRAD_MPIEXEC, what);
}

/// How often, and by how many ranks, the program runs: the options behind `mpirun`, "" for one process without it.
inline std::string command_line(int ranks, const std::string& arguments) {
  return ranks == 0 ? fmt::format("env OMP_NUM_THREADS=1 {} {}", HALOGRAD_PROGRAM, arguments)
                    : mpirun_with(fmt::format("-n {} {} {}", ranks, HALOGRAD_PROGRAM, arguments));
}

/// The same, with other arguments for the last rank.
inline std::string command_line_apart(int ranks, const std::string& arguments, const std::string& last_arguments) {
  return mpirun_with(
      fmt::format("-n {0} {1} {2} : -n 1 {1} {3}", ranks - 1, HALOGRAD_PROGRAM, arguments, last_arguments));
}

/// One thread a rank; 0 ranks: without mpirun.
inline ProgramRun run_ranks(int ranks, const std::string& arguments) {
  return run_command(command_line(ranks, arguments));
}

inline std::string train_arguments(const std::filesystem::path& run, const std::string& more = "") {
  return fmt::format("train {} --run-dir {} {}", Universes::shared().config().string(), run.string(), more);
}

inline ProgramRun train(int ranks, const std::filesystem::path& run, const std::string& more = "") {
  return run_ranks(ranks, train_arguments(run, more));
}

inline std::filesystem::path checkpoint(const std::filesystem::path& run, int step) {
  return run / "checkpoints" / fmt::format("checkpoint_{:08}.h5", step);
}

/// The lines of a run's metrics whose event is `kind`; lines still being written are left out.
inline std::vector<Json> events(const std::filesystem::path& run, const std::string& kind) {
  std::vector<Json> found;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    Json event = Json::parse(line, nullptr, false);
    if (event.is_object() && event.at("event") == kind) found.push_back(std::move(event));
  }
  return found;
}

/// What training found, without how long it took and what it read: steps, epochs and the test, in order.
inline std::vector<Json> results(const std::filesystem::path& run) {
  std::vector<Json> all;
  for (const char* kind : {"step", "epoch", "test"}) {
    for (Json& event : events(run, kind)) {
      for (const char* effort : {"seconds", "io_seconds", "comm_seconds", "samples_per_second", "file_bytes"}) {
        event.erase(effort);
      }
      all.push_back(std::move(event));
    }
  }
  return all;
}

/// Every loss of a run, in order: of steps, epochs (train, validation) and test.
inline std::vector<double> losses(const std::filesystem::path& run) {
  std::vector<double> all;
  for (const Json& event : results(run)) {
    for (const char* name : {"loss", "train_loss", "validation_loss"}) {
      if (event.contains(name)) all.push_back(event.at(name).get<double>());
    }
  }
  return all;
}

inline void expect_near(const std::vector<double>& given, const std::vector<double>& right, double tolerance) {
  ASSERT_EQ(given.size(), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    EXPECT_NEAR(given[i], right[i], tolerance * std::max(1.0, std::abs(right[i]))) << "number " << i;
  }
}

/// The files a directory tree holds that are neither whole nor set aside.
inline std::vector<std::string> leftovers(const std::filesystem::path& root) {
  std::vector<std::string> found;
  if (!std::filesystem::exists(root)) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".partial" || extension == ".tmp") found.push_back(entry.path().string());
  }
  return found;
}

/// A program in the background, for tests that disturb it from outside. What it says on stderr goes to a file.
class BackgroundRun {
public:
  explicit BackgroundRun(const std::string& command, const std::string& err = "/dev/null") {
    const std::string line = "exec " + command + " >/dev/null 2>" + err + " </dev/null";
    const char* arguments[] = {"sh", "-c", line.c_str(), nullptr};
    if (posix_spawn(&process_, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ) != 0) {
      throw std::runtime_error("cannot start " + command);
    }
  }
  ~BackgroundRun() {
    if (process_ > 0) kill(process_, SIGKILL);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  BackgroundRun(const BackgroundRun&) = delete;
  BackgroundRun& operator=(const BackgroundRun&) = delete;

  void signal(int number) const { kill(process_, number); }
  /// The processes that this one started: the ranks below mpirun, in order.
  [[nodiscard]] std::vector<pid_t> children() const {
    std::istringstream list(read_file(fmt::format("/proc/{0}/task/{0}/children", process_)));
    return {std::istream_iterator<pid_t>(list), {}};
  }
  /// Sends a signal to the first of them.
  void signal_child(int number) const {
    const std::vector<pid_t> list = children();
    if (!list.empty()) kill(list.front(), number);
  }
  /// Waits up to `seconds` for its end; nothing where it goes on.
  std::optional<int> wait(double seconds) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < limit) {
      int status = 0;
      if (waitpid(process_, &status, WNOHANG) == process_) {
        process_ = -1;
        return status;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return std::nullopt;
  }

private:
  pid_t process_ = -1;
};

/// Waits until a run's metrics hold `count` steps; false after a minute.
inline bool wait_for_steps(const std::filesystem::path& run, std::size_t count) {
  for (int i = 0; i < 6000; ++i) {
    if (events(run, "step").size() >= count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace halograd::test
