#pragma once

#include "halograd/tensor/layout.hpp"
#include "kernels/support.hpp"

namespace halograd::test {

/// A tensor of `channels` channels in a wider buffer: voxels around its box and channels beside its own, which nothing
/// may touch.
struct Slice {
  VoxelLayout layout;
  std::int64_t channels = 0;
  std::int64_t shift = 0;  ///< its first channel
  std::vector<float> buffer;

  [[nodiscard]] float* data() { return buffer.data() + shift; }
  [[nodiscard]] const float* data() const { return buffer.data() + shift; }
  [[nodiscard]] float& at(std::int64_t n, const Index& voxel, std::int64_t c) {
    return buffer[static_cast<std::size_t>(layout.offset(n, voxel) + shift + c)];
  }
  [[nodiscard]] float at(std::int64_t n, const Index& voxel, std::int64_t c) const {
    return buffer[static_cast<std::size_t>(layout.offset(n, voxel) + shift + c)];
  }
};

/// A tensor that holds `box` and up to two voxels more on each side, dense or a slice, filled with random values.
inline Slice random_slice(Dice& dice, std::int64_t samples, const Box& box, std::int64_t channels, std::uint64_t seed) {
  Slice slice{.channels = channels};
  slice.layout.box = box;
  for (int i = 0; i < 3; ++i) {
    slice.layout.box.lo[i] -= dice.between(0, 2);
    slice.layout.box.hi[i] += dice.between(0, 2);
  }
  slice.shift = dice.between(0, 1) * dice.between(0, 3);
  slice.layout.pitch = channels + slice.shift + dice.between(0, 1) * dice.between(0, 3);
  slice.buffer = random_values(samples * slice.layout.sample_elements(), seed);
  return slice;
}

/// A dense tensor of just `box`.
inline Slice dense_slice(std::int64_t samples, const Box& box, std::int64_t channels, float value = 0) {
  Slice slice{.layout = {box, channels}, .channels = channels};
  slice.buffer.assign(static_cast<std::size_t>(samples * slice.layout.sample_elements()), value);
  return slice;
}

/// Calls `visit(n, voxel, c)` for all values of `region`, in order.
template <typename Visit>
void for_each_value(std::int64_t samples, const Box& region, std::int64_t channels, const Visit& visit) {
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t d = region.lo.d; d < region.hi.d; ++d) {
      for (std::int64_t h = region.lo.h; h < region.hi.h; ++h) {
        for (std::int64_t w = region.lo.w; w < region.hi.w; ++w) {
          for (std::int64_t c = 0; c < channels; ++c) visit(n, Index{d, h, w}, c);
        }
      }
    }
  }
}

/// The values of `region`, in order.
inline std::vector<float> values_of(std::int64_t samples, const Box& region, const Slice& slice) {
  std::vector<float> values;
  for_each_value(samples, region, slice.channels,
                 [&](std::int64_t n, const Index& at, std::int64_t c) { values.push_back(slice.at(n, at, c)); });
  return values;
}

/// `slice` with the values of `region` replaced: what an operation that writes there alone has to leave.
inline Slice with_values(std::int64_t samples, const Box& region, Slice slice, const std::vector<float>& values) {
  std::size_t i = 0;
  for_each_value(samples, region, slice.channels,
                 [&](std::int64_t n, const Index& at, std::int64_t c) { slice.at(n, at, c) = values[i++]; });
  return slice;
}

}  // namespace halograd::test
