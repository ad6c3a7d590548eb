#include "halograd/data/synthetic/lagrangian.hpp"

#include <cmath>

namespace halograd {
namespace {

/// φ,ij in real space, for axes i and j.
void second_derivative(const Fourier3d& fourier, const ModeGrid& grid, const ModeField& density, int i, int j,
                       const std::vector<float>& smooth, ModeField& scratch, RealField& result) {
  grid.for_each_mode([&](std::int64_t mode, std::int64_t d, std::int64_t h, std::int64_t w) {
    const std::array<std::int64_t, 3> f = {grid.frequency(d), grid.frequency(h), w};
    const std::int64_t squared = f[0] * f[0] + f[1] * f[1] + f[2] * f[2];
    // A mixed derivative at a Nyquist frequency has no definite sign.
    const std::array<std::int64_t, 3> odd = {grid.odd_frequency(d), grid.odd_frequency(h), grid.odd_frequency(w)};
    const std::int64_t product = i == j ? f[i] * f[i] : odd[i] * odd[j];
    const float weight = smooth[d] * smooth[h] * smooth[w] * static_cast<float>(product);
    scratch[mode] = squared == 0 ? Mode{} : density[mode] * (weight / static_cast<float>(squared));
  });
  fourier.inverse(scratch, result);
}

/// exp(−k² radius² / 2) along one axis.
std::vector<float> gaussian_filter(const ModeGrid& grid, double radius) {
  std::vector<float> filter(static_cast<std::size_t>(grid.width));
  for (std::int64_t i = 0; i < grid.width; ++i) {
    const double phase = grid.fundamental() * static_cast<double>(grid.frequency(i)) * radius;
    filter[i] = static_cast<float>(std::exp(-0.5 * phase * phase));
  }
  return filter;
}

/// What makes spline coefficients of samples, along one axis: 1 / (3/4 + cos(k voxel)/4).
std::vector<float> spline_filter(std::int64_t width) {
  std::vector<float> filter(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < width; ++i) {
    const double phase = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(width);
    filter[i] = static_cast<float>(1.0 / (0.75 + 0.25 * std::cos(phase)));
  }
  return filter;
}

}  // namespace

ModeField second_order_source(const Fourier3d& fourier, const ModeGrid& grid, const ModeField& density,
                              double smoothing) {
  const std::vector<float> smooth = gaussian_filter(grid, smoothing);
  const auto voxels = static_cast<std::size_t>(grid.voxel_count());
  ModeField scratch(static_cast<std::size_t>(grid.mode_count()));
  RealField sum(voxels);
  {
    std::array<RealField, 3> diagonal = {RealField(voxels), RealField(voxels), RealField(voxels)};
    for (int i = 0; i < 3; ++i) second_derivative(fourier, grid, density, i, i, smooth, scratch, diagonal[i]);
    parallel_for(grid.voxel_count(), [&](std::int64_t x) {
      const float a = diagonal[0][x];
      const float b = diagonal[1][x];
      const float c = diagonal[2][x];
      sum[x] = a * b + a * c + b * c;
    });
  }
  RealField mixed(voxels);
  for (int i = 1; i < 3; ++i) {
    for (int j = 0; j < i; ++j) {
      second_derivative(fourier, grid, density, i, j, smooth, scratch, mixed);
      parallel_for(grid.voxel_count(), [&](std::int64_t x) { sum[x] -= mixed[x] * mixed[x]; });
    }
  }
  fourier.forward(sum, scratch);
  const float scale = 1.0F / static_cast<float>(grid.voxel_count());
  parallel_for(grid.mode_count(), [&](std::int64_t mode) { scratch[mode] *= scale; });
  return scratch;
}

void displace(const Fourier3d& fourier, const ModeGrid& grid, const ModeField& density, const ModeField& source,
              double d1, double d2, Displacement& displacement) {
  const std::vector<float> filter = spline_filter(grid.width);
  // −∇φ is i k/k² times the source; k = 2π f / box, and the displacement is wanted in voxels of box / width.
  const double unit = static_cast<double>(grid.width) / (2.0 * std::numbers::pi);
  const auto first = static_cast<float>(d1 * unit);
  const auto second = static_cast<float>(-d2 * unit);
  ModeField scratch(static_cast<std::size_t>(grid.mode_count()));
  for (int axis = 0; axis < 3; ++axis) {
    grid.for_each_mode([&](std::int64_t mode, std::int64_t d, std::int64_t h, std::int64_t w) {
      const std::int64_t fd = grid.frequency(d);
      const std::int64_t fh = grid.frequency(h);
      const std::int64_t squared = fd * fd + fh * fh + w * w;
      const std::int64_t along = grid.odd_frequency(axis == 0 ? d : axis == 1 ? h : w);
      if (squared == 0 || along == 0) {
        scratch[mode] = {};
        return;
      }
      const float factor = filter[d] * filter[h] * filter[w] * static_cast<float>(along) / static_cast<float>(squared);
      const Mode combined = first * density[mode] + second * source[mode];
      scratch[mode] = {-factor * combined.imag(), factor * combined.real()};
    });
    displacement[axis].resize(static_cast<std::size_t>(grid.voxel_count()));
    fourier.inverse(scratch, displacement[axis]);
  }
}

}  // namespace halograd
