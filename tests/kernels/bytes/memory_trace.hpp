#pragma once

#include "kernels/kernel_bytes.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace halograd::test {

/// A GPU's memory is read and written in sectors.
constexpr std::int64_t sector_bytes = 32;

/// Counts what launches read and write of the buffers made here: the sectors that a launch touches, each once, since
/// what it looks at again comes from a cache. Sees the accesses of files that CMakeLists.txt has instrumented. One at a
/// time.
class MemoryTrace {
public:
  MemoryTrace();
  ~MemoryTrace();
  MemoryTrace(const MemoryTrace&) = delete;
  MemoryTrace& operator=(const MemoryTrace&) = delete;

  /// `count` numbers in memory of the GPU, at a multiple of 16 bytes and the start of a sector.
  template <typename T>
  [[nodiscard]] T* buffer(std::int64_t count, T value = T(1)) {
    void* const memory = allocate(count * static_cast<std::int64_t>(sizeof(T)));
    std::uninitialized_fill_n(static_cast<T*>(memory), count, value);
    return static_cast<T*>(memory);
  }

  template <typename Launch>
  void launch(const Launch& body) {
    begin_launch();
    body();
    end_launch();
  }

  /// What was launched since the last call.
  [[nodiscard]] KernelBytes moved(std::int64_t least) {
    return {std::exchange(read_, 0), std::exchange(written_, 0), std::exchange(looked_at_, 0), least};
  }

  void note_read(const void* address, std::size_t bytes);
  void note_write(const void* address, std::size_t bytes);

private:
  struct Buffer {
    std::vector<std::byte> memory;
    std::vector<bool> read;  ///< of each sector
    std::vector<bool> written;
  };

  void* allocate(std::int64_t bytes);
  void begin_launch();
  void end_launch();
  Buffer* buffer_at(const void* address);

  std::vector<Buffer> buffers_;
  std::size_t last_ = 0;
  std::int64_t read_ = 0;
  std::int64_t written_ = 0;
  std::int64_t looked_at_ = 0;
};

}  // namespace halograd::test
