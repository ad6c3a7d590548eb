#include "halograd/data/synthetic/universe.hpp"

#include <cmath>

#include "halograd/core/error.hpp"
#include "halograd/data/synthetic/gaussian_field.hpp"
#include "halograd/data/synthetic/growth.hpp"
#include "halograd/data/synthetic/lagrangian.hpp"
#include "halograd/data/synthetic/particle_counts.hpp"

namespace halograd {
namespace {

constexpr std::int64_t min_width = 4;
constexpr std::int64_t max_width = 2048;

/// The side of a cube of `particles`, or 0 where it is none of those on offer.
std::int64_t cube_side(std::int64_t particles) {
  for (std::int64_t side = 1; side <= 4; ++side) {
    if (side * side * side == particles) return side;
  }
  return 0;
}

/// Narrows one redshift's counts into its channel and returns the largest.
std::uint32_t store_channel(const std::vector<std::uint32_t>& counts, std::int64_t channel,
                            std::vector<std::uint16_t>& channels_last) {
  std::vector<std::uint32_t> largest(static_cast<std::size_t>(thread_count()), 0);
  parallel_ranges(static_cast<std::int64_t>(counts.size()), [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t x = begin; x < end; ++x) {
      largest[thread] = std::max(largest[thread], counts[x]);
      channels_last[4 * x + channel] = static_cast<std::uint16_t>(counts[x]);
    }
  });
  return *std::max_element(largest.begin(), largest.end());
}

}  // namespace

UniverseStreams::UniverseStreams(std::uint64_t seed, std::int64_t index) {
  const auto stream = [&](std::uint32_t step) {
    return random_stream(seed, RandomPurpose::synthetic, static_cast<std::uint32_t>(index), step);
  };
  parameters = stream(0);
  initial_field = stream(1);
  particle_places = stream(2);
}

void check_universe_options(const UniverseOptions& options) {
  if (options.width < min_width || options.width > max_width) {
    throw UsageError("the width of a synthetic universe is {} voxels; it must be {} to {}", options.width, min_width,
                     max_width);
  }
  if (!std::isfinite(options.box) || options.box < 0.0) {
    throw UsageError(
        "the box of a synthetic universe is {} Mpc/h a side; it must be positive, or 0 for 1 Mpc/h a voxel",
        options.box);
  }
  if (!std::isfinite(options.second_order_smoothing) || options.second_order_smoothing < 0.0) {
    throw UsageError("a second-order smoothing of {} Mpc/h; it must not be negative", options.second_order_smoothing);
  }
  if (cube_side(options.particles_per_voxel) == 0) {
    throw UsageError("{} particles per voxel; it must be a cube: 1, 8, 27 or 64", options.particles_per_voxel);
  }
  for (const float redshift : options.redshifts) {
    if (!std::isfinite(redshift) || redshift < 0.0F || redshift > 100.0F) {
      throw UsageError("a redshift of {}; it must be 0 to 100", redshift);
    }
  }
}

Universe make_universe(const UniverseOptions& options, std::int64_t index) {
  check_universe_options(options);
  const UniverseStreams streams(options.seed, index);
  Universe universe;
  universe.index = index;
  universe.options = options;
  universe.unit_parameters = draw_unit_parameters(streams.parameters);
  universe.cosmology = cosmology_at(universe.unit_parameters);

  const ModeGrid grid{.width = options.width, .box = options.box_size()};
  const Fourier3d fourier(grid.width);
  const ModeField density = gaussian_density(fourier, grid, LinearPower(universe.cosmology), streams.initial_field);
  const ModeField source = second_order_source(fourier, grid, density, options.second_order_smoothing);

  universe.counts.resize(static_cast<std::size_t>(4 * grid.voxel_count()));
  Displacement displacement;
  std::vector<std::uint32_t> counts;
  for (std::int64_t channel = 0; channel < 4; ++channel) {
    const double redshift = options.redshifts[channel];
    displace(fourier, grid, density, source, growth_first_order(universe.cosmology, redshift),
             growth_second_order(universe.cosmology, redshift), displacement);
    count_particles(displacement, grid.width, cube_side(options.particles_per_voxel), streams.particle_places, counts);
    const std::uint32_t largest = store_channel(counts, channel, universe.counts);
    if (largest > 65535) {
      throw UsageError(
          "universe {} has {} particles in one voxel, more than 16 bits hold; fewer particles per voxel "
          "(now {}) would fit",
          index, largest, options.particles_per_voxel);
    }
  }
  return universe;
}

}  // namespace halograd
