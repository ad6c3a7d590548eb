#include "kernels/bytes/memory_trace.hpp"

#include <algorithm>

namespace halograd::test {
namespace {

/// The trace whose launch is running.
MemoryTrace* running = nullptr;

void mark(std::vector<bool>& sectors, std::ptrdiff_t offset, std::size_t bytes) {
  const auto first = static_cast<std::size_t>(offset) / sector_bytes;
  const auto last = (static_cast<std::size_t>(offset) + bytes - 1) / sector_bytes;
  for (std::size_t i = first; i <= last && i < sectors.size(); ++i) sectors[i] = true;
}

/// How many are marked; clears them.
std::int64_t take_marks(std::vector<bool>& sectors) {
  const auto count = std::count(sectors.begin(), sectors.end(), true);
  std::fill(sectors.begin(), sectors.end(), false);
  return count;
}

}  // namespace

MemoryTrace::MemoryTrace() = default;
MemoryTrace::~MemoryTrace() = default;

void* MemoryTrace::allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const std::size_t sectors = (size + sector_bytes - 1) / sector_bytes;
  buffers_.push_back({std::vector<std::byte>(size), std::vector<bool>(sectors), std::vector<bool>(sectors)});
  return buffers_.back().memory.data();
}

void MemoryTrace::begin_launch() {
  running = this;
}

void MemoryTrace::end_launch() {
  running = nullptr;
  for (Buffer& buffer : buffers_) {
    read_ += take_marks(buffer.read) * sector_bytes;
    written_ += take_marks(buffer.written) * sector_bytes;
  }
}

MemoryTrace::Buffer* MemoryTrace::buffer_at(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const auto holds = [&](const Buffer& buffer) {
    return at >= buffer.memory.data() && at < buffer.memory.data() + buffer.memory.size();
  };
  if (last_ < buffers_.size() && holds(buffers_[last_])) return &buffers_[last_];
  const auto found = std::find_if(buffers_.begin(), buffers_.end(), holds);
  if (found == buffers_.end()) return nullptr;
  last_ = static_cast<std::size_t>(found - buffers_.begin());
  return &*found;
}

void MemoryTrace::note_read(const void* address, std::size_t bytes) {
  Buffer* const buffer = buffer_at(address);
  if (buffer == nullptr) return;
  looked_at_ += static_cast<std::int64_t>(bytes);
  mark(buffer->read, static_cast<const std::byte*>(address) - buffer->memory.data(), bytes);
}

void MemoryTrace::note_write(const void* address, std::size_t bytes) {
  Buffer* const buffer = buffer_at(address);
  if (buffer == nullptr) return;
  mark(buffer->written, static_cast<const std::byte*>(address) - buffer->memory.data(), bytes);
}

}  // namespace halograd::test

// What the compiler calls before each access of an instrumented file: the thread sanitizer's functions, of which these
// take the place.
namespace {

using halograd::test::running;

void read(const void* address, std::size_t bytes) {
  if (running != nullptr) running->note_read(address, bytes);
}
void write(const void* address, std::size_t bytes) {
  if (running != nullptr) running->note_write(address, bytes);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void __tsan_init();
void __tsan_func_entry(void*);
void __tsan_func_exit();
void __tsan_read1(void*);
void __tsan_read2(void*);
void __tsan_read4(void*);
void __tsan_read8(void*);
void __tsan_read16(void*);
void __tsan_write1(void*);
void __tsan_write2(void*);
void __tsan_write4(void*);
void __tsan_write8(void*);
void __tsan_write16(void*);
void __tsan_read_range(void*, std::size_t);
void __tsan_write_range(void*, std::size_t);
void __tsan_vptr_update(void**, void*);

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read1(void* address) {
  read(address, 1);
}
void __tsan_read2(void* address) {
  read(address, 2);
}
void __tsan_read4(void* address) {
  read(address, 4);
}
void __tsan_read8(void* address) {
  read(address, 8);
}
void __tsan_read16(void* address) {
  read(address, 16);
}
void __tsan_write1(void* address) {
  write(address, 1);
}
void __tsan_write2(void* address) {
  write(address, 2);
}
void __tsan_write4(void* address) {
  write(address, 4);
}
void __tsan_write8(void* address) {
  write(address, 8);
}
void __tsan_write16(void* address) {
  write(address, 16);
}
void __tsan_read_range(void* address, std::size_t bytes) {
  read(address, bytes);
}
void __tsan_write_range(void* address, std::size_t bytes) {
  write(address, bytes);
}
void __tsan_vptr_update(void**, void*) {}
}
// NOLINTEND(bugprone-reserved-identifier)
