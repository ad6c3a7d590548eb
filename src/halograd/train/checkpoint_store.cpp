#include "halograd/train/checkpoint_store.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/train/checkpoint_seal.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace halograd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "checkpoint_";
constexpr std::string_view suffix = ".h5";
constexpr std::string_view partial = ".partial";  ///< a file that is still being written

fs::path partial_of(const fs::path& file) {
  return file.string() + std::string(partial);
}

/// The step in "checkpoint_00000012.h5"; nothing for any other name.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - suffix.size();
  std::int64_t step = 0;
  const auto [at, failure] = std::from_chars(name.data() + prefix.size(), end, step);
  return failure == std::errc{} && at == end ? std::optional(step) : std::nullopt;
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory, failure)) files.push_back(entry.path());
  return files;
}

void remove_or_warn(const fs::path& file) {
  std::error_code failure;
  fs::remove(file, failure);
  if (failure) log::warn("cannot remove {}: {}", file.string(), failure.message());
}

/// Why a checkpoint is no good; empty where it is.
std::string fault_of(const fs::path& file) {
  try {
    static_cast<void>(read_checkpoint_state(file));
    return "";
  } catch (const DataError& fault) {
    return fault.what();
  }
}

}  // namespace

fs::path CheckpointStore::file_of(std::int64_t step) const {
  return directory_ / fmt::format("{}{:08}{}", prefix, step, suffix);
}

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> steps;
  for (const fs::path& file : files_in(directory_)) {
    if (const auto step = step_of(file.filename().string())) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

fs::path CheckpointStore::write(const CheckpointState& state, std::span<const NamedArray> arrays, bool best) const {
  remove_leftovers();
  const fs::path file = file_of(state.step);
  write_checkpoint(partial_of(file), state, arrays);
  rename_durably(partial_of(file), file);
  set_aside_later_than(state.step);
  if (best) mark_best(file);
  retire();
  return file;
}

std::optional<fs::path> CheckpointStore::newest_good() const {
  std::vector<std::pair<std::int64_t, fs::path>> candidates;
  for (const std::int64_t step : steps()) candidates.emplace_back(step, file_of(step));
  // The best one may outlive its numbered twin.
  if (fs::exists(best_file())) candidates.emplace_back(sealed_step(best_file()).value_or(-1), best_file());
  std::ranges::stable_sort(candidates, std::greater<>{}, &std::pair<std::int64_t, fs::path>::first);
  for (const auto& [step, file] : candidates) {
    const std::string fault = fault_of(file);
    if (fault.empty()) return file;
    log::warn("{}; looking for an earlier one", fault);
  }
  if (candidates.empty()) return std::nullopt;
  throw DataError("{}: none of its {} checkpoints can be read", directory_.string(), candidates.size());
}

void CheckpointStore::remove_leftovers() const {
  for (const fs::path& file : files_in(directory_)) {
    if (file.extension() == partial) remove_or_warn(file);
  }
}

void CheckpointStore::set_aside_later_than(std::int64_t step) const {
  std::vector<fs::path> later;
  for (const std::int64_t one : steps()) {
    if (one > step) later.push_back(file_of(one));
  }
  if (fs::exists(best_file()) && sealed_step(best_file()).value_or(step) > step) later.push_back(best_file());
  for (const fs::path& file : later) {
    std::error_code failure;
    fs::rename(file, file.string() + ".damaged", failure);
    if (failure) log::warn("cannot set {} aside: {}", file.string(), failure.message());
  }
}

void CheckpointStore::mark_best(const fs::path& file) const {
  const fs::path temporary = partial_of(best_file());
  std::error_code failure;
  fs::create_hard_link(file, temporary, failure);
  if (failure) fs::copy_file(file, temporary, fs::copy_options::overwrite_existing, failure);
  if (failure) throw ResourceError("cannot write {}: {}", temporary.string(), failure.message());
  sync_path(temporary);
  rename_durably(temporary, best_file());
}

void CheckpointStore::retire() const {
  const std::vector<std::int64_t> all = steps();
  const auto last = static_cast<std::int64_t>(all.size()) - kept_;
  for (std::int64_t i = 1; i < last; ++i) remove_or_warn(file_of(all[static_cast<std::size_t>(i)]));
}

}  // namespace halograd
