#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/data/file_layout.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// What the files of a data set hold, without their voxels. A universe is one entry of one file; they are numbered in
/// the order of the files, entries within. Files that are laid out alike share one layout.
struct Catalogue {
  std::vector<std::string> names;                  ///< of the files, sorted
  std::vector<FileLayout> layouts;                 ///< the different ones
  std::vector<std::int32_t> layout_of;             ///< [files]: which of them
  std::vector<ValueScale> scales;                  ///< [files]
  std::vector<std::int64_t> first_universe;        ///< [files + 1]
  std::vector<Cosmology> targets;                  ///< [universes]
  std::vector<std::optional<Cosmology>> physical;  ///< [universes]

  [[nodiscard]] std::int64_t files() const { return static_cast<std::int64_t>(names.size()); }
  [[nodiscard]] std::int64_t universes() const { return static_cast<std::int64_t>(targets.size()); }
  [[nodiscard]] const FileLayout& layout(std::int64_t file) const {
    return layouts[static_cast<std::size_t>(layout_of[static_cast<std::size_t>(file)])];
  }
};

/// Collective; the same `names`, of files in `directory`, on every rank. Inspects each file once, spread over the
/// ranks, and gives all of them the same catalogue. Throws DataError on all ranks alike where one file is not what is
/// expected.
Catalogue inspect_files(const Communicator& communicator, const std::filesystem::path& directory,
                        std::vector<std::string> names, const FileExpectation& expected);

}  // namespace halograd
