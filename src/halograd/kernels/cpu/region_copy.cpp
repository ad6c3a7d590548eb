#include "halograd/kernels/cpu/region_copy.hpp"

#include "halograd/core/parallel.hpp"

#include <cstring>

namespace halograd::cpu {
namespace {

/// A row along w is contiguous in both buffers, and longer runs are where the region is as wide as both boxes.
struct Rows {
  explicit Rows(const RegionCopy& copy)
      : region(copy.region),
        from(copy.from),
        to(copy.to),
        length(region.extent().w * copy.channels),
        channels(copy.channels),
        count(copy.samples * region.extent().d * region.extent().h) {}

  [[nodiscard]] std::int64_t offset(const Box& box, std::int64_t row) const {
    const Extent inner = region.extent();
    const Extent outer = box.extent();
    const std::int64_t h = row % inner.h + region.lo.h - box.lo.h;
    const std::int64_t d = row / inner.h % inner.d + region.lo.d - box.lo.d;
    const std::int64_t n = row / inner.h / inner.d;
    return (((n * outer.d + d) * outer.h + h) * outer.w + region.lo.w - box.lo.w) * channels;
  }

  Box region;
  Box from;
  Box to;
  std::int64_t length;
  std::int64_t channels;
  std::int64_t count;
};

}  // namespace

void copy_region(const RegionCopy& copy, const float* from, float* to) {
  const Rows rows(copy);
  parallel_for(rows.count, [&](std::int64_t row) {
    std::memcpy(to + rows.offset(rows.to, row), from + rows.offset(rows.from, row),
                static_cast<std::size_t>(rows.length) * sizeof(float));
  });
}

void add_region(const RegionCopy& copy, const float* from, float* to) {
  const Rows rows(copy);
  parallel_for(rows.count, [&](std::int64_t row) {
    const float* const source = from + rows.offset(rows.from, row);
    float* const target = to + rows.offset(rows.to, row);
    for (std::int64_t i = 0; i < rows.length; ++i) target[i] += source[i];
  });
}

}  // namespace halograd::cpu
