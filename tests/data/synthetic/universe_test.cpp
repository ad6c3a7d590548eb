#include "halograd/data/synthetic/universe.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <numeric>

#include "halograd/core/error.hpp"
#include "halograd/data/synthetic/gaussian_field.hpp"
#include "halograd/data/synthetic/growth.hpp"
#include "halograd/data/synthetic/particle_counts.hpp"
#include "measured_power.hpp"

namespace halograd {
namespace {

using testing::contrast_modes;
using testing::each_mode;
using testing::measured_power;

/// The linear field a universe was made from, made again.
struct LinearField {
  explicit LinearField(const Universe& universe)
      : cosmology(universe.cosmology),
        grid{.width = universe.options.width, .box = universe.options.box_size()},
        fourier(grid.width),
        density(gaussian_density(fourier, grid, LinearPower(cosmology),
                                 UniverseStreams(universe.options.seed, universe.index).initial_field)),
        source(second_order_source(fourier, grid, density, universe.options.second_order_smoothing)) {}

  Cosmology cosmology;
  ModeGrid grid;
  Fourier3d fourier;
  ModeField density;
  ModeField source;
};

/// The noise that particles' random places put into counts of 8 a voxel: half the spectrum of the difference between
/// two sets of counts that differ in those places alone, with the window taken out as from the counts themselves.
std::vector<double> discreteness_power(const LinearField& field, double redshift, double k_max, std::size_t bins) {
  Displacement displacement;
  displace(field.fourier, field.grid, field.density, field.source, growth_first_order(field.cosmology, redshift),
           growth_second_order(field.cosmology, redshift), displacement);
  std::array<std::vector<std::uint32_t>, 2> counts;
  for (std::uint32_t i = 0; i < 2; ++i) {
    count_particles(displacement, field.grid.width, 2, {.seed = 77, .step = i}, counts[i]);
  }
  const ModeField difference = contrast_modes(field.fourier, field.grid, 8.0, [&](std::size_t x) {
    return 8.0 + static_cast<double>(counts[0][x]) - static_cast<double>(counts[1][x]);
  });
  std::vector<double> power = measured_power(field.grid, difference, k_max, bins, true);
  for (double& value : power) value *= 0.5;
  return power;
}

TEST(Universe, CountsHaveTheRealisedFieldsSpectrumGrown) {
  constexpr double k_max = 0.1;
  constexpr std::size_t bins = 5;
  constexpr int seeds = 8;
  UniverseOptions options{.width = 64, .box = 512.0};
  std::array<std::array<double, bins>, 4> ratio{};
  for (int seed = 0; seed < seeds; ++seed) {
    options.seed = static_cast<std::uint64_t>(100 + seed);
    const Universe universe = make_universe(options, 0);
    const LinearField field(universe);
    const std::vector<double> linear = measured_power(field.grid, field.density, k_max, bins, false);
    for (std::size_t channel = 0; channel < 4; ++channel) {
      const double redshift = options.redshifts[channel];
      const ModeField modes = contrast_modes(field.fourier, field.grid, 8.0,
                                             [&](std::size_t x) { return universe.counts[4 * x + channel]; });
      const std::vector<double> power = measured_power(field.grid, modes, k_max, bins, true);
      const std::vector<double> noise = discreteness_power(field, redshift, k_max, bins);
      const double growth = growth_first_order(universe.cosmology, redshift);
      for (std::size_t bin = 0; bin < bins; ++bin) {
        ratio[channel][bin] += (power[bin] - noise[bin]) / (linear[bin] * growth * growth) / seeds;
      }
    }
  }
  for (std::size_t channel = 0; channel < 4; ++channel) {
    for (std::size_t bin = 0; bin < bins; ++bin) {
      EXPECT_NEAR(ratio[channel][bin], 1.0, 0.1) << "z = " << options.redshifts[channel] << ", bin " << bin;
      RecordProperty(fmt::format("z{}_bin{}", options.redshifts[channel], bin),
                     fmt::format("{:.4f}", ratio[channel][bin]));
    }
  }
  // Where little has moved yet, linear theory is better than that.
  for (std::size_t bin = 0; bin < bins; ++bin) EXPECT_NEAR(ratio[0][bin], 1.0, 0.03) << "z = 3, bin " << bin;
}

TEST(Universe, ParticlesInCellsAreLessNoisyThanParticlesAtRandom) {
  const UniverseOptions options{.width = 32, .box = 256.0, .seed = 3};
  const LinearField field(make_universe(options, 0));
  const double poisson = std::pow(field.grid.voxel(), 3) / 8.0;
  for (const float redshift : options.redshifts) {
    const std::vector<double> noise = discreteness_power(field, redshift, 0.1, 2);
    EXPECT_GT(noise[1], 0.0);
    EXPECT_LT(noise[0], 0.1 * poisson) << "z = " << redshift;
    EXPECT_LT(noise[1], 0.25 * poisson) << "z = " << redshift;
  }
}

TEST(GaussianField, HasTheDrawnSigma8) {
  // 4 Mpc/h voxels and 512 Mpc/h hold all but little of σ8²; what they leave out is summed below, mode by mode.
  const ModeGrid grid{.width = 128, .box = 512.0};
  const Fourier3d fourier(grid.width);
  const double volume = grid.box * grid.box * grid.box;
  constexpr int seeds = 8;
  double mean_deviation = 0.0;
  for (int seed = 0; seed < seeds; ++seed) {
    const UniverseStreams streams(static_cast<std::uint64_t>(seed), 0);
    const Cosmology cosmology = cosmology_at(draw_unit_parameters(streams.parameters));
    const LinearPower power(cosmology);
    const ModeField density = gaussian_density(fourier, grid, power, streams.initial_field);
    // k² of a mode is an integer times the fundamental's: P and W are needed once for each.
    std::vector<double> squared_sigma(3 * 64 * 64 + 1, -1.0);
    double realised = 0.0;
    double expected = 0.0;
    double variance = 0.0;
    each_mode(grid, [&](std::size_t mode, double k, double weight, double) {
      const double squared = k / grid.fundamental() * k / grid.fundamental();
      double& known = squared_sigma[static_cast<std::size_t>(std::lround(squared))];
      const double window = top_hat_window(8.0 * k);
      if (known < 0.0) known = power(k) / volume * window * window;
      realised += weight * static_cast<double>(std::norm(density[mode])) * window * window;
      expected += weight * known;
      // |δ(k)|² is exponentially distributed: its standard deviation is its mean; a conjugate adds no freedom.
      variance += weight * weight * known * known;
    });
    EXPECT_NEAR(std::sqrt(expected) / cosmology.sigma8, 1.0, 0.015) << "what the grid leaves out, seed " << seed;
    const double spread = 0.5 * std::sqrt(variance) / expected;
    const double deviation = std::sqrt(realised / expected) - 1.0;
    EXPECT_LT(spread, 0.012);
    EXPECT_NEAR(std::sqrt(realised) / cosmology.sigma8, 1.0, 0.015 + 4.0 * spread) << "seed " << seed;
    EXPECT_LT(std::abs(deviation), 4.0 * spread) << "seed " << seed;
    mean_deviation += deviation / spread / seeds;
  }
  EXPECT_LT(std::abs(mean_deviation), 3.5 / std::sqrt(seeds));
}

TEST(Universe, KeepsEveryParticleInEveryChannel) {
  for (const std::int64_t particles : {1, 8, 27}) {
    const Universe universe = make_universe({.width = 15, .seed = 9, .particles_per_voxel = particles}, 2);
    ASSERT_EQ(universe.counts.size(), 4U * 15 * 15 * 15);
    for (std::size_t channel = 0; channel < 4; ++channel) {
      std::int64_t sum = 0;
      for (std::size_t x = channel; x < universe.counts.size(); x += 4) sum += universe.counts[x];
      EXPECT_EQ(sum, particles * 15 * 15 * 15);
    }
  }
}

TEST(Universe, DependsOnSeedAndIndexButNotOnThreads) {
  const UniverseOptions options{.width = 20, .seed = 4};
  const int threads = omp_get_max_threads();
  const Universe first = make_universe(options, 1);
  omp_set_num_threads(3);
  const Universe other_threads = make_universe(options, 1);
  omp_set_num_threads(1);
  const Universe one_thread = make_universe(options, 1);
  omp_set_num_threads(threads);
  EXPECT_EQ(first.counts, other_threads.counts);
  EXPECT_EQ(first.counts, one_thread.counts);
  EXPECT_NE(first.counts, make_universe(options, 2).counts);
  UniverseOptions other_seed = options;
  other_seed.seed = 5;
  const Universe other = make_universe(other_seed, 1);
  EXPECT_NE(first.counts, other.counts);
  EXPECT_NE(first.unit_parameters, other.unit_parameters);
}

TEST(Universe, ParametersFillTheirRanges) {
  std::array<double, 4> sum{};
  std::array<double, 4> squares{};
  constexpr int count = 2000;
  for (int i = 0; i < count; ++i) {
    const auto unit = draw_unit_parameters(UniverseStreams(1, i).parameters);
    for (std::size_t p = 0; p < 4; ++p) {
      ASSERT_GE(unit[p], -1.0F);
      ASSERT_LT(unit[p], 1.0F);
      sum[p] += unit[p] / count;
      squares[p] += unit[p] * unit[p] / count;
    }
  }
  for (std::size_t p = 0; p < 4; ++p) {
    EXPECT_NEAR(sum[p], 0.0, 4.0 * std::sqrt(1.0 / 3.0 / count));
    EXPECT_NEAR(squares[p], 1.0 / 3.0, 4.0 * std::sqrt(4.0 / 45.0 / count));
  }
}

TEST(Universe, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(make_universe({.width = 0}, 0), UsageError);
  EXPECT_THROW(make_universe({.width = 8, .box = -1.0}, 0), UsageError);
  EXPECT_THROW(make_universe({.width = 8, .redshifts = {3, 1, 0, -1}}, 0), UsageError);
  EXPECT_THROW(make_universe({.width = 8, .particles_per_voxel = 2}, 0), UsageError);
  EXPECT_THROW(make_universe({.width = 8, .second_order_smoothing = -1.0}, 0), UsageError);
}

}  // namespace
}  // namespace halograd
