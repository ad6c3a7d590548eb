#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace halograd {

/// Address space for up to `capacity` bytes that never moves; a page costs memory only once it is written. Zero at
/// first.
class ReservedMemory {
public:
  ReservedMemory() = default;
  /// Throws ResourceError where the system refuses.
  explicit ReservedMemory(std::int64_t capacity);
  ~ReservedMemory();
  ReservedMemory(ReservedMemory&& other) noexcept;
  ReservedMemory& operator=(ReservedMemory&& other) noexcept;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] std::span<float> floats() const {
    return {reinterpret_cast<float*>(data_), static_cast<std::size_t>(capacity_) / sizeof(float)};
  }

private:
  std::byte* data_ = nullptr;
  std::int64_t capacity_ = 0;
};

/// All the node's memory, in bytes.
std::int64_t total_memory_bytes();

}  // namespace halograd
