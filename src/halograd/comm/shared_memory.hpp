#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace halograd::comm {

/// Start of message buffers within a segment or allocation.
constexpr std::int64_t buffer_alignment = 128;
constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

/// A piece of POSIX shared memory mapped into this process, all zero when new. Its name lasts only until the other
/// processes have opened it, the memory until the last of them lets go of it.
class SharedSegment {
public:
  SharedSegment() = default;
  /// A new one under a name of its own. Throws ResourceError, also where the memory file system is full.
  static SharedSegment create(std::int64_t bytes);
  /// The one that another process of this node made. Throws ResourceError.
  static SharedSegment open(const std::string& name, std::int64_t bytes);
  ~SharedSegment();
  SharedSegment(SharedSegment&& other) noexcept { swap(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept {
    swap(other);
    return *this;
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Removes the name; the memory stays.
  void unlink();

private:
  void swap(SharedSegment& other) noexcept;

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::string name_;
  bool linked_ = false;
};

/// Memory of this process alone, aligned like message buffers and touched already.
class PrivateBuffer {
public:
  PrivateBuffer() = default;
  explicit PrivateBuffer(std::int64_t bytes);

  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Never gives the memory back: for buffers that a message in flight may still write to.
  void leak() { static_cast<void>(data_.release()); }

private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t bytes_ = 0;
};

}  // namespace halograd::comm
