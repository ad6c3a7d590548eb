#pragma once

#include "halograd/train/checkpoint.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace halograd {

/// The checkpoints of a run, in one directory: checkpoint_<step>.h5 and best.h5, the best on validation so far (a hard
/// link where the file system has them). Belongs to rank 0.
class CheckpointStore {
public:
  /// `kept` checkpoints stay besides the first and the best.
  CheckpointStore(std::filesystem::path directory, std::int64_t kept) : directory_(std::move(directory)), kept_(kept) {}

  /// Writes checkpoint_<state.step>.h5, whole or not at all even after a crash, and removes those no longer kept.
  /// `best`: it is the best on validation. Files of later steps (damaged ones, that a resumed run passed over) are set
  /// aside as
  /// *.damaged. Gives back the file. Throws ResourceError, the earlier checkpoints untouched.
  std::filesystem::path write(const CheckpointState& state, std::span<const NamedArray> arrays,
                              bool best = false) const;

  /// The newest checkpoint that verifies; warns of every damaged newer one. Nothing where there is none at all. Throws
  /// DataError where all are damaged.
  [[nodiscard]] std::optional<std::filesystem::path> newest_good() const;

  [[nodiscard]] std::filesystem::path file_of(std::int64_t step) const;
  [[nodiscard]] std::filesystem::path best_file() const { return directory_ / "best.h5"; }

  /// The steps that have a file checkpoint_<step>.h5, rising.
  [[nodiscard]] std::vector<std::int64_t> steps() const;

  /// Renames the checkpoints of later steps than `step` to *.damaged, so that nobody goes on from them.
  void set_aside_later_than(std::int64_t step) const;

private:
  void remove_leftovers() const;
  void mark_best(const std::filesystem::path& file) const;
  void retire() const;

  std::filesystem::path directory_;
  std::int64_t kept_;
};

}  // namespace halograd
