#pragma once

#include "support/temporary_directory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace halograd::test {

/// What a run of the built program gave.
struct ProgramRun {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs a shell command; ended after two minutes (exit code 124), as nothing here may hang.
inline ProgramRun run_command(const std::string& command) {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const std::string err = directory / "err";
  const int status = std::system(fmt::format("timeout 120 {} >{} 2>{} </dev/null", command, out, err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

/// `halograd <arguments>`, as a user runs it.
inline ProgramRun run_halograd(const std::string& arguments) {
  return run_command(fmt::format("{} {}", HALOGRAD_PROGRAM, arguments));
}

/// mpirun with what it needs here: root, more ranks than cores, one thread a rank.
inline ProgramRun run_mpi(const std::string& arguments) {
  return run_command(
      fmt::format("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                  "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1 {} {}",
                  HALOGRAD_MPIEXEC, arguments));
}

inline ProgramRun run_on(int ranks, const std::string& arguments) {
  return run_mpi(fmt::format("-n {} {} {}", ranks, HALOGRAD_PROGRAM, arguments));
}

/// Two ranks of one job that are told different things.
inline ProgramRun run_apart(const std::string& rank_0, const std::string& rank_1) {
  return run_mpi(fmt::format("-n 1 {0} {1} : -n 1 {0} {2}", HALOGRAD_PROGRAM, rank_0, rank_1));
}

inline int lines_that_begin(const std::string& text, const std::string& start) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with(start) ? 1 : 0;
  return count;
}

/// A failure as users see it: nothing on stdout, one error line on stderr, and that line says `words`.
inline void expect_failure(const ProgramRun& run, int exit_code, const std::vector<std::string>& words) {
  EXPECT_EQ(run.exit_code, exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(lines_that_begin(run.err, "halograd: error: "), 1) << run.err;
  for (const std::string& word : words) {
    EXPECT_NE(run.err.find(word), std::string::npos) << word << " is not in: " << run.err;
  }
}

}  // namespace halograd::test
