#include "halograd/kernels/reference/region_copy.hpp"

namespace halograd::reference {
namespace {

template <typename Combine>
void for_each_value(const RegionCopy& copy, const Combine& combine) {
  const auto place = [&](const Box& box, std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) {
    const Extent e = box.extent();
    return (((n * e.d + d - box.lo.d) * e.h + h - box.lo.h) * e.w + w - box.lo.w) * copy.channels;
  };
  const Box& region = copy.region;
  for (std::int64_t n = 0; n < copy.samples; ++n) {
    for (std::int64_t d = region.lo.d; d < region.hi.d; ++d) {
      for (std::int64_t h = region.lo.h; h < region.hi.h; ++h) {
        for (std::int64_t w = region.lo.w; w < region.hi.w; ++w) {
          for (std::int64_t c = 0; c < copy.channels; ++c) {
            combine(place(copy.from, n, d, h, w) + c, place(copy.to, n, d, h, w) + c);
          }
        }
      }
    }
  }
}

}  // namespace

void copy_region(const RegionCopy& copy, const float* from, float* to) {
  for_each_value(copy, [&](std::int64_t i, std::int64_t j) { to[j] = from[i]; });
}

void add_region(const RegionCopy& copy, const float* from, float* to) {
  for_each_value(copy, [&](std::int64_t i, std::int64_t j) { to[j] += from[i]; });
}

}  // namespace halograd::reference
