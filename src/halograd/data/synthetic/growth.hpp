#pragma once

#include "halograd/data/synthetic/cosmology.hpp"

namespace halograd {

/// Ω_m at redshift z.
double matter_fraction(const Cosmology& cosmology, double redshift);

/// The linear growth factor D1(z), 1 today: D1 ∝ H(a) ∫₀ᵃ da'/(a' H(a'))³ (Heath 1977, MNRAS 179, 351).
double growth_first_order(const Cosmology& cosmology, double redshift);

/// The second-order growth factor D2(z) ≈ −3/7 D1² Ω_m(z)^(−1/143) (Bouchet et al. 1995, A&A 296, 575, eq. 50).
double growth_second_order(const Cosmology& cosmology, double redshift);

}  // namespace halograd
