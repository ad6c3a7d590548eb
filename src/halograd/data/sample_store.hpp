#pragma once

#include "halograd/core/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace halograd {

enum class StoreKind { off, memory, disk };

struct StoreOptions {
  StoreKind kind = StoreKind::memory;
  std::int64_t memory_budget = 0;     ///< bytes this rank may hold in memory (with StoreKind::memory)
  std::filesystem::path directory{};  ///< node-local, for what does not fit; empty: the system's temporary directory
};

/// One rank's hyperslabs of the samples its group owns, in the files' own type: in memory as far as the budget goes,
/// the rest in one file on the node's disk, which nobody else sees (it is unlinked at once). Not collective.
class SampleStore {
public:
  /// `sizes`: the bytes of each sample that will be stored, in the order of storing; `ranks_on_node` share its disk.
  /// Takes the disk space (not the memory) now. Throws ResourceError with the numbers where they do not fit: needed,
  /// memory budget, disk space and which directory, and what would help.
  SampleStore(const StoreOptions& options, const std::vector<std::int64_t>& sizes, std::int64_t ranks_on_node);
  ~SampleStore();
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  [[nodiscard]] bool holds(std::int64_t sample) const { return places_.contains(sample); }

  /// Where to put a sample's bytes before store(): its place in memory, or a buffer on the way to the disk.
  std::byte* place_for(std::int64_t sample, std::int64_t bytes);
  /// Keeps what was put there. Throws ResourceError naming the directory where the disk fails.
  void store(std::int64_t sample);
  /// A stored sample: in memory, or read into `scratch`. Throws ResourceError naming the directory.
  const std::byte* fetch(std::int64_t sample, std::vector<std::byte>& scratch) const;

  [[nodiscard]] std::int64_t memory_bytes() const { return memory_used_; }
  [[nodiscard]] std::int64_t disk_bytes() const { return disk_used_; }

private:
  struct Place {
    bool on_disk = false;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  std::filesystem::path directory_;
  ReservedMemory memory_;
  int file_ = -1;
  std::int64_t memory_used_ = 0;
  std::int64_t memory_limit_ = 0;
  std::int64_t disk_used_ = 0;
  std::unordered_map<std::int64_t, Place> places_;
  std::unordered_map<std::int64_t, Place> pending_;  // given out, not stored yet
  std::vector<std::byte> on_the_way_;
};

/// What one rank of the node may take by default: what the node has free, less what `others` (bytes, of all its ranks)
/// are about to need, shared out, with a tenth left to the system.
std::int64_t default_memory_budget(std::int64_t others, std::int64_t ranks_on_node);

}  // namespace halograd
