#include "halograd/train/run_directory.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"

#include <system_error>
#include <utility>

namespace halograd {

namespace fs = std::filesystem;

fs::path RunDirectory::default_path(const fs::path& config_file) {
  return fs::path("runs") / config_file.stem();
}

bool RunDirectory::holds_run(const fs::path& root) {
  const RunDirectory run(root);
  std::error_code unreadable;
  return fs::exists(run.config_file(), unreadable) || fs::exists(run.metrics_file(), unreadable) ||
         (fs::is_directory(run.checkpoints(), unreadable) && !fs::is_empty(run.checkpoints(), unreadable));
}

void RunDirectory::check(RunStart start) const {
  const bool there = holds_run(root_);
  if (start == RunStart::fresh && there) {
    throw UsageError("{} already holds a run: use --resume to go on with it, or another --run-dir", root_.string());
  }
  if (start == RunStart::resume && !there) {
    throw UsageError("{} holds no run to resume: leave --resume out, or name the run's --run-dir", root_.string());
  }
}

void RunDirectory::open(RunStart start, const Config& config) const {
  check(start);
  std::error_code failure;
  fs::create_directories(checkpoints(), failure);
  if (failure) {
    throw ResourceError("cannot write to the run directory {}: {}", root_.string(), failure.message());
  }
  try {
    write_durably(config_file(), to_toml(config));
    log::add_file(log_file());
  } catch (const ResourceError& cause) {
    throw ResourceError("cannot write to the run directory {}: {}", root_.string(), cause.what());
  }
}

}  // namespace halograd
