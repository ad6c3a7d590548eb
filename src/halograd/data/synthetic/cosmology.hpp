#pragma once

#include <array>

#include "halograd/core/random.hpp"

namespace halograd {

/// A flat ΛCDM universe without radiation or massive neutrinos.
struct Cosmology {
  double omega_m = 0.3089;         ///< matter (baryons included) over the critical density, today
  double sigma8 = 0.8159;          ///< linear rms of matter in spheres of 8 Mpc/h, today
  double spectral_index = 0.9667;  ///< n_s, of the primordial spectrum
  double hubble = 67.74;           ///< H0 in km/s/Mpc
  double omega_b = 0.0486;         ///< baryons over the critical density: the same in every universe

  [[nodiscard]] double h() const { return hubble / 100.0; }
};

/// The four parameters that differ between universes, in the order of the files: Ω_M, σ8, n_s, H0.
inline constexpr std::array<const char*, 4> cosmology_names = {"Omega_m", "sigma_8", "N_spec", "H_0"};

/// The centre of each parameter's range (Planck 2015), and the half width as a part of the centre.
inline constexpr std::array<double, 4> cosmology_centres = {0.3089, 0.8159, 0.9667, 67.74};
inline constexpr double cosmology_half_width = 0.3;

/// The universe whose parameters lie at `unit` in their ranges: −1 the lowest, 1 the highest value.
Cosmology cosmology_at(const std::array<float, 4>& unit);

/// Four places uniform in [−1, 1), from the first four numbers of `stream`.
std::array<float, 4> draw_unit_parameters(const RandomStream& stream);

}  // namespace halograd
