#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/data/sample_place.hpp"
#include "halograd/tensor/box.hpp"
#include "halograd/tensor/shape.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halograd {

enum class Split : std::uint8_t { train, validation, test };

struct DatasetOptions {
  std::filesystem::path path{};                ///< a directory of *.hdf5 and *.h5 files
  std::string format = "cosmoflow";            ///< or "lits"
  GlobalShape shape{};                         ///< what a sample must be: the network's input
  bool subvolumes = false;                     ///< cut larger volumes into samples of that shape
  std::array<double, 3> split{0.8, 0.1, 0.1};  ///< fractions: train, validation, test
  std::uint64_t seed = 1;                      ///< of the split
};

/// How many of `samples` go to train, validation and test. Fractions that sum to less than 1 leave samples out. Each
/// count is rounded down, and at least 1 where its fraction is above 0; what is left over goes to the first split with
/// a fraction above 0. Where there are too few samples, test and then validation go without, before training does.
/// Throws UsageError where a fraction is negative or not a number, or where they sum to 0 or to more than 1.
std::array<std::int64_t, 3> split_counts(std::int64_t samples, const std::array<double, 3>& fractions);

/// A directory of samples and what each is used for. A universe is one volume: a file, or an entry of a stacked one. A
/// sample is a universe or, with `subvolumes`, one of the boxes that it is cut into. Samples are numbered from 0: files
/// in order of their names, entries within, then boxes with depth slowest and width fastest. A small value.
class Dataset {
public:
  /// Collective. Lists the directory on every rank, checks that all see the same, and looks into every file once, each
  /// rank into some. Universes go to the splits whole: which ones depends on their number and the seed alone. Throws
  /// the same on all ranks: DataError naming the directory or file, UsageError on bad options.
  static Dataset open(const Communicator& communicator, const DatasetOptions& options);

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t universes() const;
  /// Whether samples come with a label of each voxel.
  [[nodiscard]] bool labelled() const;
  /// What every sample is.
  [[nodiscard]] const GlobalShape& shape() const;
  /// The sample numbers of a split, rising; what a Sampler takes.
  [[nodiscard]] const std::vector<std::int64_t>& samples(Split split) const;

  // Of one sample; all throw UsageError where there is no such sample.

  /// "a.hdf5", "a.hdf5[3]" of a stacked file, "a.hdf5[0:64,64:128,0:64]" of a larger volume (D, H, W),
  /// "a.hdf5[3,0:64,64:128,0:64]" of both.
  [[nodiscard]] std::string name(std::int64_t sample) const;
  /// The path of its file.
  [[nodiscard]] std::string file(std::int64_t sample) const;
  [[nodiscard]] const FileLayout& layout(std::int64_t sample) const;
  [[nodiscard]] SamplePlace place(std::int64_t sample) const;
  /// What its numbers stand for.
  [[nodiscard]] const ValueScale& scale(std::int64_t sample) const;
  /// Zeros where the format has none.
  [[nodiscard]] const Cosmology& targets(std::int64_t sample) const;
  [[nodiscard]] const std::optional<Cosmology>& physical(std::int64_t sample) const;
  /// What the voxels (and labels) of `box` take in memory, as they are read.
  [[nodiscard]] std::int64_t bytes(std::int64_t sample, const Box& box) const;

private:
  struct Contents;
  struct Position;
  explicit Dataset(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  [[nodiscard]] Position position(std::int64_t sample) const;

  std::shared_ptr<const Contents> contents_;  // shared: copies of a Dataset are cheap
};

}  // namespace halograd
