#pragma once

#include "halograd/core/memory.hpp"
#include "halograd/data/store_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <unordered_map>
#include <vector>

namespace halograd {

enum class StoreKind { off, memory, disk };

struct StoreOptions {
  StoreKind kind = StoreKind::memory;
  std::int64_t memory_budget = 0;  ///< bytes this rank may hold in memory (with StoreKind::memory)
  /// Bytes there are for it: samples within the budget that need more are refused.
  std::int64_t memory_free = std::numeric_limits<std::int64_t>::max();
  std::filesystem::path directory{};  ///< node-local, for what does not fit; empty: the system's temporary directory
};

/// One rank's hyperslabs of the samples its group owns, in the files' own type: in memory as far as the budget goes,
/// the rest in one file on the node's disk, which nobody else sees (it is unlinked at once). Not collective; used from
/// one thread.
class SampleStore {
public:
  /// `sizes`: the bytes of each sample that will be stored, in the order of storing; each goes to memory where it still
  /// fits there and else to disk. `ranks_on_node` share the disk. Takes the disk space now, and checks
  /// that there is the memory. Throws ResourceError with the numbers where they do not fit: needed, memory budget, disk
  /// space and which directory, and what would help. Throws UsageError with StoreKind::off.
  SampleStore(const StoreOptions& options, const std::vector<std::int64_t>& sizes, std::int64_t ranks_on_node);

  [[nodiscard]] bool holds(std::int64_t sample) const { return places_.contains(sample); }

  /// Where to put a sample's bytes before store(): its place in memory, or a buffer on the way to the disk, which the
  /// next place_for() uses again: at most one sample is on its way to the disk. Throws UsageError for a sample that has
  /// a place already and for more than was announced.
  std::byte* place_for(std::int64_t sample, std::int64_t bytes);
  /// Keeps what was put there. Throws ResourceError naming the directory where the disk fails.
  void store(std::int64_t sample);
  /// Takes back a place that was given out, since the sample could not be had. What it took stays taken.
  void give_up(std::int64_t sample) { pending_.erase(sample); }
  /// A stored sample: in memory, or read into `scratch`. Throws ResourceError naming the directory.
  const std::byte* fetch(std::int64_t sample, std::vector<std::byte>& scratch) const;

  /// What the announced samples take, rounded up to cache lines.
  [[nodiscard]] std::int64_t memory_bytes() const { return announced_.memory; }
  [[nodiscard]] std::int64_t disk_bytes() const { return announced_.disk; }

private:
  struct Place {
    bool on_disk = false;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  struct Usage {
    std::int64_t memory = 0;
    std::int64_t disk = 0;
  };
  static Place next_place(Usage& used, std::int64_t memory_limit, std::int64_t bytes);

  ReservedMemory memory_;  // as much as the samples may take of it
  StoreFile file_;
  Usage announced_;
  Usage used_;
  std::unordered_map<std::int64_t, Place> places_;
  std::unordered_map<std::int64_t, Place> pending_;  // given out, not stored yet
  std::vector<std::byte> on_the_way_;
};

/// What each of `ranks_on_node` may take of the `available` memory of a node, with a tenth left to the system, when
/// each is about to need `own_needs` for other things. Bytes; 0 where nothing is left.
std::int64_t memory_share(std::int64_t available, std::int64_t own_needs, std::int64_t ranks_on_node);

}  // namespace halograd
