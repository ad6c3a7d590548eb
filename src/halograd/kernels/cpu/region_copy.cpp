#include "halograd/kernels/cpu/region_copy.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <cstring>

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

void copy_row(const Row& row, const float* __restrict from, float* __restrict to) {
  for (std::int64_t i = 0; i < row.runs; ++i) {
    std::memcpy(to + i * row.to_pitch, from + i * row.from_pitch, static_cast<std::size_t>(row.length) * sizeof(float));
  }
}

HALOGRAD_MULTIVERSION
void add_row(const Row& row, const float* __restrict from, float* __restrict to) {
  for (std::int64_t i = 0; i < row.runs; ++i) {
    const float* const source = from + i * row.from_pitch;
    float* const target = to + i * row.to_pitch;
    for (std::int64_t j = 0; j < row.length; ++j) target[j] += source[j];
  }
}

/// Calls `combine(row, from, to)` for each row of the region along w: one run where neither side is a channel slice,
/// else one a voxel.
template <typename Combine>
void for_each_row(const RegionCopy& copy, const float* from, float* to, const Combine& combine) {
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
  for_each_row(copy, static_cast<const float*>(from), static_cast<float*>(to), copy_row);
}

void add_region(const RegionCopy& copy, const void* from, void* to) {
  for_each_row(copy, static_cast<const float*>(from), static_cast<float*>(to), add_row);
}

}  // namespace halograd::cpu
