#include "halograd/kernels/cpu/region_copy.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <algorithm>

namespace halograd::cpu {
namespace {

/// Values below which waking the other threads costs more than they save.
constexpr std::int64_t few_values = 1 << 14;

/// `runs` runs of `length` numbers that lie together in both buffers.
struct Row {
  std::int64_t runs;
  std::int64_t length;
  std::int64_t from_pitch;
  std::int64_t to_pitch;
};

template <typename T>
void copy_row(const Row& row, const T* __restrict from, T* __restrict to) {
  for (std::int64_t i = 0; i < row.runs; ++i) {
    std::copy_n(from + i * row.from_pitch, row.length, to + i * row.to_pitch);
  }
}

template <typename T>
HALOGRAD_MULTIVERSION void add_row(const Row& row, const T* __restrict from, T* __restrict to) {
  for (std::int64_t i = 0; i < row.runs; ++i) {
    const T* const source = from + i * row.from_pitch;
    T* const target = to + i * row.to_pitch;
    for (std::int64_t j = 0; j < row.length; ++j) {
      target[j] = T(static_cast<float>(target[j]) + static_cast<float>(source[j]));
    }
  }
}

/// Calls `combine(row, from, to)` for each row of the region along w: one run where neither side is a channel slice,
/// else one a voxel.
template <typename T, typename Combine>
void for_each_row(const RegionCopy& copy, const T* from, T* to, const Combine& combine) {
  const Extent size = copy.region.extent();
  const bool dense = copy.from.pitch == copy.channels && copy.to.pitch == copy.channels;
  const Row row =
      dense ? Row{1, size.w * copy.channels, 0, 0} : Row{size.w, copy.channels, copy.from.pitch, copy.to.pitch};
  const std::int64_t rows = copy.samples * size.d * size.h;
  const auto some = [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = i / (size.d * size.h);
      const Index at{copy.region.lo.d + i / size.h % size.d, copy.region.lo.h + i % size.h, copy.region.lo.w};
      combine(row, from + copy.from.offset(n, at), to + copy.to.offset(n, at));
    }
  };
  if (copy.samples * copy.region.volume() * copy.channels < few_values) {
    some(0, rows, 0);
  } else {
    parallel_ranges(rows, some);
  }
}

}  // namespace

void copy_region(const RegionCopy& copy, const void* from, void* to) {
  with_activation_type(copy.type, [&]<typename T>(T) {
    for_each_row(copy, static_cast<const T*>(from), static_cast<T*>(to), copy_row<T>);
  });
}

void add_region(const RegionCopy& copy, const void* from, void* to) {
  with_activation_type(copy.type, [&]<typename T>(T) {
    for_each_row(copy, static_cast<const T*>(from), static_cast<T*>(to), add_row<T>);
  });
}

}  // namespace halograd::cpu
