#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "halograd/data/synthetic/cosmology.hpp"

namespace halograd {

/// How a synthetic universe is made.
struct UniverseOptions {
  std::int64_t width = 128;                                   ///< voxels a side, W
  double box = 0.0;                                           ///< Mpc/h a side; 0: 1 Mpc/h a voxel, as the real set has
  std::uint64_t seed = 1;                                     ///< with the universe's index it fixes every bit
  std::array<float, 4> redshifts = {3.0F, 1.5F, 0.5F, 0.0F};  ///< one channel each
  /// The mean count, a cube: 1, 8, 27 or 64. The real set has 1. With eight, less of a count's scatter is discreteness:
  /// at 32³ a linear fit to the channels' spectra finds Ω_M with half the squared error it has with one.
  std::int64_t particles_per_voxel = 8;

  /// Mpc/h: the second-order displacement is that of the field smoothed by a Gaussian of this radius; 0: not smoothed.
  /// Within shells that have crossed the second order overshoots and smears what has collapsed; without those scales
  /// (they are where Kitaura & Heß 2013, MNRAS 435, L78, leave it too) large scales lose less power and peaks stay
  /// sharp.
  double second_order_smoothing = 4.0;

  [[nodiscard]] double box_size() const { return box > 0.0 ? box : static_cast<double>(width); }
};

/// One synthetic universe: what a file of the CosmoFlow set holds.
struct Universe {
  std::int64_t index = 0;
  UniverseOptions options;
  std::array<float, 4> unit_parameters{};  ///< each parameter's place in its range, in [−1, 1)
  Cosmology cosmology;
  std::vector<std::uint16_t> counts;  ///< particles per voxel: [W,W,W,4], channels (redshifts) last
};

/// The independent random numbers that universe `index` of a seed is made from.
struct UniverseStreams {
  UniverseStreams(std::uint64_t seed, std::int64_t index);
  RandomStream parameters;
  RandomStream initial_field;
  RandomStream particle_places;
};

/// Makes universe `index`: draws its parameters and linear density field, moves particles by second-order Lagrangian
/// perturbation theory to each redshift, and counts them per voxel (nearest grid point).
///
/// The result depends on the options and `index` alone, not on the number of threads. It needs about 40 bytes a voxel
/// at its peak (5 GiB at 512³). Throws UsageError where an option makes no sense, or a voxel holds more than 65535
/// particles.
Universe make_universe(const UniverseOptions& options, std::int64_t index);

/// Throws UsageError unless a universe can be made with `options`.
void check_universe_options(const UniverseOptions& options);

}  // namespace halograd
