#include "halograd/core/memory.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace halograd {

ReservedMemory::ReservedMemory(std::int64_t capacity) : capacity_(capacity) {
  if (capacity == 0) return;
  void* const mapped = mmap(nullptr, static_cast<std::size_t>(capacity), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw ResourceError("cannot reserve {} of memory: {}", format_bytes(static_cast<double>(capacity)),
                        std::strerror(errno));
  }
  // Huge pages make the first touch several times cheaper; where the kernel has none, nothing is lost.
  madvise(mapped, static_cast<std::size_t>(capacity), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapped);
}

ReservedMemory::~ReservedMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(capacity_));
}

ReservedMemory::ReservedMemory(ReservedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

ReservedMemory& ReservedMemory::operator=(ReservedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

std::int64_t total_memory_bytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace halograd
