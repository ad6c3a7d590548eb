#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/data/hdf5_source.hpp"
#include "halograd/tensor/shape.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace halograd {

enum class Split : std::uint8_t { train, validation, test };

struct DatasetOptions {
  std::filesystem::path path{};                ///< a directory of *.hdf5 and *.h5 files, one sample each
  std::string format = "cosmoflow";            ///< the only one yet
  GlobalShape shape{};                         ///< what a sample must be: the network's input
  std::array<double, 3> split{0.8, 0.1, 0.1};  ///< fractions: train, validation, test
  std::uint64_t seed = 1;                      ///< of the split
};

/// How many of `samples` go to train, validation and test. Fractions that sum to less than 1 leave samples out. Each
/// count is rounded down, and at least 1 where its fraction is above 0; what is left over goes to the first split with
/// a fraction above 0. Where there are too few samples, test and then validation go without, before training does.
/// Throws UsageError where a fraction is negative or not a number, or where they sum to 0 or to more than 1.
std::array<std::int64_t, 3> split_counts(std::int64_t samples, const std::array<double, 3>& fractions);

/// A directory of samples, numbered from 0 in order of their file names, and what each is used for. A small value.
class Dataset {
public:
  /// Collective. Lists the directory on every rank, checks that all see the same and that the first file is what
  /// `options` expects. Throws the same on all ranks: DataError naming the directory or file, UsageError on bad
  /// options.
  static Dataset open(const Communicator& communicator, const DatasetOptions& options);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(names_->size()); }
  /// The sample numbers of a split, in the order of their names; what a Sampler takes.
  [[nodiscard]] const std::vector<std::int64_t>& samples(Split split) const {
    return splits_[static_cast<std::size_t>(split)];
  }
  [[nodiscard]] const std::string& name(std::int64_t sample) const {
    return names_->at(static_cast<std::size_t>(sample));
  }
  [[nodiscard]] std::string file(std::int64_t sample) const { return (path_ / name(sample)).string(); }
  [[nodiscard]] const GlobalShape& shape() const { return shape_; }
  /// What reads a sample's file.
  [[nodiscard]] Hdf5Source source() const { return Hdf5Source({.shape = shape_}); }

private:
  Dataset() = default;

  std::filesystem::path path_;
  GlobalShape shape_;
  std::shared_ptr<const std::vector<std::string>> names_;  // shared: copies of a Dataset are cheap
  std::array<std::vector<std::int64_t>, 3> splits_;
};

}  // namespace halograd
