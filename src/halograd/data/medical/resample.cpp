#include "halograd/data/medical/resample.hpp"

#include <algorithm>
#include <cmath>

namespace halograd {

LinearTap linear_tap(std::int64_t o, std::int64_t n, std::int64_t width) {
  const double centre = (static_cast<double>(o) + 0.5) * static_cast<double>(n) / static_cast<double>(width) - 0.5;
  const double inside = std::clamp(centre, 0.0, static_cast<double>(n - 1));
  const auto low = static_cast<std::int64_t>(std::floor(inside));
  return {low, std::min(low + 1, n - 1), inside - static_cast<double>(low)};
}

LinearTaps::LinearTaps(std::int64_t n, std::int64_t stride, std::int64_t width) {
  for (std::int64_t o = 0; o < width; ++o) {
    LinearTap tap = linear_tap(o, n, width);
    tap.low *= stride;
    tap.high *= stride;
    taps.push_back(tap);
  }
}

std::vector<std::int64_t> nearest_offsets(std::int64_t n, std::int64_t stride, std::int64_t width) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t o = 0; o < width; ++o) offsets.push_back(nearest(o, n, width) * stride);
  return offsets;
}

void resample_nearest(std::span<const std::uint8_t> labels, const CanonicalView& view, std::int64_t width,
                      std::span<std::uint8_t> output) {
  const std::vector<std::int64_t> ds = nearest_offsets(view.extent.d, view.stride.d, width);
  const std::vector<std::int64_t> hs = nearest_offsets(view.extent.h, view.stride.h, width);
  const std::vector<std::int64_t> ws = nearest_offsets(view.extent.w, view.stride.w, width);
  parallel_for(width * width, [&](std::int64_t row) {
    const std::uint8_t* const line = labels.data() + view.start + ds[static_cast<std::size_t>(row / width)] +
                                     hs[static_cast<std::size_t>(row % width)];
    std::uint8_t* const out = output.data() + row * width;
    for (std::int64_t o = 0; o < width; ++o) out[o] = line[ws[static_cast<std::size_t>(o)]];
  });
}

void restore_nearest(std::span<const std::uint8_t> labels, std::int64_t width, const CanonicalView& view,
                     std::span<std::uint8_t> output) {
  const std::vector<std::int64_t> ds = nearest_offsets(width, width * width, view.extent.d);
  const std::vector<std::int64_t> hs = nearest_offsets(width, width, view.extent.h);
  const std::vector<std::int64_t> ws = nearest_offsets(width, 1, view.extent.w);
  parallel_for(view.extent.d * view.extent.h, [&](std::int64_t row) {
    const std::int64_t d = row / view.extent.h;
    const std::int64_t h = row % view.extent.h;
    const std::uint8_t* const line = labels.data() + ds[static_cast<std::size_t>(d)] + hs[static_cast<std::size_t>(h)];
    for (std::int64_t w = 0; w < view.extent.w; ++w) {
      output[static_cast<std::size_t>(view.at(d, h, w))] = line[ws[static_cast<std::size_t>(w)]];
    }
  });
}

}  // namespace halograd
