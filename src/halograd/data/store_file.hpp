#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace halograd {

/// One file on disk that only this object sees: it has no name, and its space comes back when the object goes, however
/// the process ends. Failures are ResourceErrors that name the directory.
class StoreFile {
public:
  /// What to say of the space where it cannot be had.
  struct Demand {
    std::int64_t bytes = 0;          ///< of the file
    std::int64_t memory_bytes = 0;   ///< of the same rank, that fit in memory
    std::int64_t memory_budget = 0;  ///< of the same rank
    std::int64_t ranks_on_node = 1;  ///< that share the disk
  };

  StoreFile() = default;
  /// Takes the space in `directory`; an empty one means the system's temporary directory, which must not be memory.
  StoreFile(const std::filesystem::path& directory, const Demand& demand);
  ~StoreFile();
  StoreFile(StoreFile&& other) noexcept;
  StoreFile& operator=(StoreFile&& other) noexcept;

  void write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const;
  void read(std::byte* data, std::int64_t bytes, std::int64_t offset) const;

private:
  void take_space(const Demand& demand) const;

  std::filesystem::path directory_;
  int file_ = -1;
};

}  // namespace halograd
