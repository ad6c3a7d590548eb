#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace halograd::cpu {

/// Begins at a cache line: registers that lie across two cost a loop up to half its speed.
template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line)); }
  void deallocate(T* data, std::size_t) { ::operator delete(data, line); }
  bool operator==(const LineAllocator&) const { return true; }
};

using LineVector = std::vector<float, LineAllocator<float>>;

inline LineVector line_vector(std::int64_t elements) {
  return LineVector(static_cast<std::size_t>(elements));
}

}  // namespace halograd::cpu
