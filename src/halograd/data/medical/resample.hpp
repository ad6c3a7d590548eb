#pragma once

#include "halograd/core/parallel.hpp"
#include "halograd/data/medical/orientation.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace halograd {

// Resampling n voxels to W along each dimension, aligned by the volume's faces: output o is centred on input
// (o + 1/2) n/W - 1/2. Nothing is averaged where W is much below n.

/// The input voxel that holds the centre of output `o`. Exact. Where W >= n, the way back (`nearest(i, W, n)`) finds an
/// output that was taken from input i, for every i.
constexpr std::int64_t nearest(std::int64_t o, std::int64_t n, std::int64_t width) {
  return (2 * o + 1) * n / (2 * width);
}

/// The two input voxels between which an output's centre lies, and the second one's weight: 0 at the faces, where
/// nothing lies beyond.
struct LinearTap {
  std::int64_t low = 0;
  std::int64_t high = 0;
  double weight = 0;
};

LinearTap linear_tap(std::int64_t o, std::int64_t n, std::int64_t width);

/// For each output along one dimension: its two inputs as offsets into the array.
struct LinearTaps {
  std::vector<LinearTap> taps;
  LinearTaps(std::int64_t n, std::int64_t stride, std::int64_t width);
};

/// For each output along one dimension: its nearest input as an offset into the array.
std::vector<std::int64_t> nearest_offsets(std::int64_t n, std::int64_t stride, std::int64_t width);

/// output: [W,W,W], canonical, each voxel `encode` of the value interpolated in `voxels`, a file's array seen through
/// `view`. Uses all threads.
template <typename T, typename Encode, typename Output>
void resample_linear(std::span<const T> voxels, const CanonicalView& view, std::int64_t width, const Encode& encode,
                     std::span<Output> output) {
  const LinearTaps ds(view.extent.d, view.stride.d, width);
  const LinearTaps hs(view.extent.h, view.stride.h, width);
  const LinearTaps ws(view.extent.w, view.stride.w, width);
  const T* const start = voxels.data() + view.start;
  const auto mix = [](double low, double high, double weight) { return low + weight * (high - low); };
  parallel_for(width * width, [&](std::int64_t row) {
    const LinearTap& d = ds.taps[static_cast<std::size_t>(row / width)];
    const LinearTap& h = hs.taps[static_cast<std::size_t>(row % width)];
    const T* const ll = start + d.low + h.low;
    const T* const lh = start + d.low + h.high;
    const T* const hl = start + d.high + h.low;
    const T* const hh = start + d.high + h.high;
    Output* const out = output.data() + row * width;
    for (std::int64_t o = 0; o < width; ++o) {
      const LinearTap& w = ws.taps[static_cast<std::size_t>(o)];
      const auto along = [&](const T* line) {
        return mix(static_cast<double>(line[w.low]), static_cast<double>(line[w.high]), w.weight);
      };
      out[o] = encode(mix(mix(along(ll), along(lh), h.weight), mix(along(hl), along(hh), h.weight), d.weight));
    }
  });
}

/// output: [W,W,W], canonical, each label that of the nearest voxel of `labels`, a file's array seen through `view`.
void resample_nearest(std::span<const std::uint8_t> labels, const CanonicalView& view, std::int64_t width,
                      std::span<std::uint8_t> output);

/// The way back: `output`, a file's array seen through `view`, gets at each voxel the nearest of `labels` [W,W,W].
void restore_nearest(std::span<const std::uint8_t> labels, std::int64_t width, const CanonicalView& view,
                     std::span<std::uint8_t> output);

}  // namespace halograd
