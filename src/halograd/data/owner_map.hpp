#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halograd {

/// Where a sample of a mini-batch comes from, and which data-parallel group trains it.
struct SampleMove {
  static constexpr std::int64_t file = -1;
  std::int64_t sample = 0;
  std::int64_t from = file;  ///< the group that holds it, or `file`
  std::int64_t to = 0;
  friend bool operator==(const SampleMove&, const SampleMove&) = default;
};

/// Which group holds each sample: the first that read it. A pure function of the mini-batches in their order, so that
/// all ranks know it without asking (paper, section III-B).
class OwnerMap {
public:
  OwnerMap(std::int64_t samples, std::int64_t groups);

  /// The moves of the next mini-batch (global, in order), group after group. With `keep` each group owns from then on
  /// what it reads; without, nothing changes.
  std::vector<SampleMove> next(std::span<const std::int64_t> mini_batch, bool keep);

  /// Nobody yet: SampleMove::file.
  [[nodiscard]] std::int64_t owner(std::int64_t sample) const { return owners_[static_cast<std::size_t>(sample)]; }
  /// In rising order.
  [[nodiscard]] std::vector<std::int64_t> owned_by(std::int64_t group) const;

private:
  std::int64_t groups_;
  std::vector<std::int64_t> owners_;
};

}  // namespace halograd
