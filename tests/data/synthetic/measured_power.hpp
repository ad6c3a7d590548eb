#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "halograd/data/synthetic/fourier.hpp"

namespace halograd::testing {

/// sin(π f / W) / (π f / W): what counting into voxels multiplies a mode of frequency f by, along one axis.
inline double voxel_window(std::int64_t frequency, std::int64_t width) {
  if (frequency == 0) return 1.0;
  const double x = std::numbers::pi * static_cast<double>(frequency) / static_cast<double>(width);
  return std::sin(x) / x;
}

/// Calls `body(mode, k, weight, window)` for each mode but k = 0; a mode that stands for its conjugate too weighs 2.
template <typename Body>
void each_mode(const ModeGrid& grid, const Body& body) {
  for (std::int64_t row = 0; row < grid.width * grid.width; ++row) {
    const std::int64_t fd = grid.frequency(row / grid.width);
    const std::int64_t fh = grid.frequency(row % grid.width);
    for (std::int64_t w = 0; w < grid.half_width(); ++w) {
      const std::int64_t squared = fd * fd + fh * fh + w * w;
      if (squared == 0) continue;
      const double window = voxel_window(fd, grid.width) * voxel_window(fh, grid.width) * voxel_window(w, grid.width);
      body(static_cast<std::size_t>(row * grid.half_width() + w),
           grid.fundamental() * std::sqrt(static_cast<double>(squared)), w == 0 || 2 * w == grid.width ? 1.0 : 2.0,
           window);
    }
  }
}

/// The mean of |mode|² in `bins` equal bins of [0, k_max), times the box's volume: a spectrum in (Mpc/h)³. With
/// `counted` the window of the voxels is taken out.
inline std::vector<double> measured_power(const ModeGrid& grid, const ModeField& modes, double k_max, std::size_t bins,
                                          bool counted) {
  std::vector<double> sum(bins, 0.0);
  std::vector<double> weights(bins, 0.0);
  each_mode(grid, [&](std::size_t mode, double k, double weight, double window) {
    if (k >= k_max) return;
    const auto bin = static_cast<std::size_t>(k / k_max * static_cast<double>(bins));
    sum[bin] += weight * static_cast<double>(std::norm(modes[mode])) / (counted ? window * window : 1.0);
    weights[bin] += weight;
  });
  for (std::size_t bin = 0; bin < bins; ++bin) sum[bin] *= grid.box * grid.box * grid.box / weights[bin];
  return sum;
}

/// The modes of values(x) / mean − 1, where `value(x)` gives the field.
template <typename Value>
ModeField contrast_modes(const Fourier3d& fourier, const ModeGrid& grid, double mean, const Value& value) {
  RealField field(static_cast<std::size_t>(grid.voxel_count()));
  for (std::size_t x = 0; x < field.size(); ++x) field[x] = static_cast<float>(value(x) / mean - 1.0);
  ModeField modes(static_cast<std::size_t>(grid.mode_count()));
  fourier.forward(field, modes);
  for (Mode& mode : modes) mode /= static_cast<float>(grid.voxel_count());
  return modes;
}

}  // namespace halograd::testing
