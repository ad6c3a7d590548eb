#include "halograd/kernels/reference/region_copy.hpp"

#include "halograd/kernels/reference/voxels.hpp"

namespace halograd::reference {
namespace {

template <typename Combine>
void for_each_value(const RegionCopy& copy, const Combine& combine) {
  for (std::int64_t n = 0; n < copy.samples; ++n) {
    for_each_voxel(copy.region, [&](const Index& at) {
      const std::int64_t from = copy.from.offset(n, at);
      const std::int64_t to = copy.to.offset(n, at);
      for (std::int64_t c = 0; c < copy.channels; ++c) combine(from + c, to + c);
    });
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
