#include <gtest/gtest.h>

#include <cmath>

#include "halograd/data/synthetic/lagrangian.hpp"
#include "halograd/data/synthetic/particle_counts.hpp"

namespace halograd {
namespace {

constexpr double pi = std::numbers::pi;

/// The modes of `value(d, h, w)`.
template <typename Value>
ModeField modes_of(const Fourier3d& fourier, const ModeGrid& grid, const Value& value) {
  RealField field(static_cast<std::size_t>(grid.voxel_count()));
  const std::int64_t n = grid.width;
  for (std::int64_t x = 0; x < grid.voxel_count(); ++x) {
    field[x] = static_cast<float>(value(x / (n * n), x / n % n, x % n));
  }
  ModeField modes(static_cast<std::size_t>(grid.mode_count()));
  fourier.forward(field, modes);
  for (Mode& mode : modes) mode /= static_cast<float>(grid.voxel_count());
  return modes;
}

class FourierWidths : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(FourierWidths, ThereAndBackIsTheSameField) {
  const ModeGrid grid{.width = GetParam(), .box = 1.0};
  const Fourier3d fourier(grid.width);
  const auto value = [](std::int64_t d, std::int64_t h, std::int64_t w) {
    return std::sin(d * d + 3.1 * h + 7.7 * w * h);
  };
  ModeField modes = modes_of(fourier, grid, value);
  RealField back(static_cast<std::size_t>(grid.voxel_count()));
  fourier.inverse(modes, back);
  const std::int64_t n = grid.width;
  for (std::int64_t x = 0; x < grid.voxel_count(); ++x) {
    ASSERT_NEAR(back[x], value(x / (n * n), x / n % n, x % n), 2e-6);
  }
}

TEST_P(FourierWidths, AWaveIsOneMode) {
  const ModeGrid grid{.width = GetParam(), .box = 1.0};
  const std::int64_t n = grid.width;
  const ModeField modes = modes_of(Fourier3d(n), grid, [&](std::int64_t d, std::int64_t h, std::int64_t w) {
    return 2.0 * std::cos(2.0 * pi * static_cast<double>(-d + 2 * h + w) / static_cast<double>(n));
  });
  for (std::int64_t mode = 0; mode < grid.mode_count(); ++mode) {
    const bool wave = mode == ((n - 1) * n + 2) * grid.half_width() + 1;
    ASSERT_NEAR(std::abs(modes[mode] - Mode(wave ? 1.0F : 0.0F)), 0.0, 2e-6) << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(EvenAndOdd, FourierWidths, ::testing::Values(6, 9, 16));

TEST(Lagrangian, APlaneWaveMovesAsZeldovichSaysAndHasNoSecondOrder) {
  const ModeGrid grid{.width = 32, .box = 64.0};
  const Fourier3d fourier(grid.width);
  const double k = 2.0 * pi / 32.0;  // per voxel
  const ModeField density =
      modes_of(fourier, grid, [&](std::int64_t, std::int64_t h, std::int64_t) { return 0.1 * std::cos(k * h); });
  const ModeField source = second_order_source(fourier, grid, density, 0.0);
  for (const Mode& mode : source) ASSERT_LT(std::abs(mode), 1e-8F);

  Displacement displacement;
  displace(fourier, grid, density, source, 0.5, -3.0 / 7.0 * 0.25, displacement);
  for (std::int64_t h = 0; h < 32; ++h) {
    // δ = −∇·ψ, so ψ = −A sin(kx)/k; the spline through it is evaluated at its own points.
    const auto at = [&](std::int64_t i) { return displacement[1][((i + 32) % 32) * 32]; };
    const double value = (at(h - 1) + 6.0 * at(h) + at(h + 1)) / 8.0;
    // The filters of the two other axes are 1 at zero frequency.
    EXPECT_NEAR(value, -0.5 * 0.1 * std::sin(k * h) / k, 1e-5);
    EXPECT_NEAR(displacement[0][h * 32], 0.0, 1e-6);
    EXPECT_NEAR(displacement[2][h * 32], 0.0, 1e-6);
  }
}

TEST(Lagrangian, CrossedWavesHaveTheAnalyticSecondOrder) {
  // With δ = A cos kx + B cos 2ky the source is φ,xx φ,yy = A cos kx B cos 2ky.
  const ModeGrid grid{.width = 24, .box = 48.0};
  const Fourier3d fourier(grid.width);
  const double k = 2.0 * pi / 24.0;
  const ModeField density = modes_of(fourier, grid, [&](std::int64_t d, std::int64_t, std::int64_t w) {
    return 0.3 * std::cos(k * d) + 0.2 * std::cos(2.0 * k * w);
  });
  const ModeField expected = modes_of(fourier, grid, [&](std::int64_t d, std::int64_t, std::int64_t w) {
    return 0.3 * std::cos(k * d) * 0.2 * std::cos(2.0 * k * w);
  });
  const ModeField source = second_order_source(fourier, grid, density, 0.0);
  for (std::size_t mode = 0; mode < source.size(); ++mode)
    ASSERT_NEAR(std::abs(source[mode] - expected[mode]), 0.0, 1e-7);

  // Smoothing takes exp(−k²R²/2) off each factor before they are multiplied.
  const ModeField smoothed = second_order_source(fourier, grid, density, 3.0);
  const double per_box = k * 24.0 / 48.0;
  const double factor = std::exp(-0.5 * 9.0 * per_box * per_box * (1.0 + 4.0));
  for (std::size_t mode = 0; mode < source.size(); ++mode) {
    ASSERT_NEAR(std::abs(smoothed[mode] - static_cast<float>(factor) * expected[mode]), 0.0, 1e-7);
  }

  // ψ2 = D2 ∇φ2 with ∇²φ2 the source: φ2 = −A B cos kx cos 2ky / 5k², so ψ2_x = D2 A B sin kx cos 2ky / 5k.
  Displacement displacement;
  displace(fourier, grid, ModeField(source.size()), source, 1.0, -3.0 / 7.0, displacement);
  const double cx = 1.0 / (0.75 + 0.25 * std::cos(k));
  const double cy = 1.0 / (0.75 + 0.25 * std::cos(2.0 * k));
  for (std::int64_t d = 0; d < 24; ++d) {
    for (std::int64_t w = 0; w < 24; ++w) {
      const double psi = -3.0 / 7.0 * 0.3 * 0.2 * std::sin(k * d) * std::cos(2.0 * k * w) / (5.0 * k);
      ASSERT_NEAR(displacement[0][d * 24 * 24 + w], psi * cx * cy, 1e-5);
    }
  }
}

TEST(ParticleCounts, UnmovedAndEvenlyMovedParticlesAreCountedWhereTheyAre) {
  constexpr std::int64_t n = 10;
  Displacement displacement;
  displacement.fill(RealField(n * n * n, 0.0F));
  std::vector<std::uint32_t> counts;
  for (const std::int64_t side : {1, 2, 3, 4}) {
    count_particles(displacement, n, side, RandomStream{}, counts);
    for (const std::uint32_t count : counts) ASSERT_EQ(count, side * side * side);
  }
  // By whole voxels, over the edge of the box.
  displacement[0].assign(n * n * n, -13.0F);
  displacement[2].assign(n * n * n, 27.0F);
  count_particles(displacement, n, 2, RandomStream{}, counts);
  for (const std::uint32_t count : counts) ASSERT_EQ(count, 8U);
}

TEST(ParticleCounts, ASqueezedFluidHasTheMassItShould) {
  // x = q − a sin(kq)/k along the width: the mass in a voxel is what lies between the places its faces came from.
  constexpr std::int64_t n = 48;
  const double k = 2.0 * pi / n;
  const double a = 0.6;
  const auto moved = [&](double q) { return q - a * std::sin(k * q) / k; };
  const ModeGrid grid{.width = n, .box = n};
  const Fourier3d fourier(n);
  // δ = −∇·ψ at the voxels' centres.
  const ModeField density =
      modes_of(fourier, grid, [&](std::int64_t, std::int64_t, std::int64_t w) { return a * std::cos(k * (w + 0.5)); });
  Displacement displacement;
  displace(fourier, grid, density, ModeField(density.size()), 1.0, 0.0, displacement);
  std::vector<std::uint32_t> counts;
  count_particles(displacement, n, 2, RandomStream{.seed = 5}, counts);
  const auto came_from = [&](double x) {
    double low = -n;
    double high = 2 * n;
    for (int i = 0; i < 60; ++i) (moved(0.5 * (low + high)) < x ? low : high) = 0.5 * (low + high);
    return low;
  };
  for (std::int64_t w = 0; w < n; ++w) {
    double sum = 0.0;
    for (std::int64_t row = 0; row < n * n; ++row) sum += counts[row * n + w];
    const double mass = came_from(w + 1.0) - came_from(static_cast<double>(w));
    // Particles near two faces are in or out by chance: at most half a cell's layer (2 × 4 n²) with variance 1/4 each.
    EXPECT_NEAR(sum / (8.0 * n * n), mass, 5.0 * std::sqrt(0.25 * 2 * 4 * n * n) / (8.0 * n * n)) << w;
  }
}

}  // namespace
}  // namespace halograd
