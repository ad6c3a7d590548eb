#include "halograd/data/synthetic/growth.hpp"

#include <cmath>

namespace halograd {
namespace {

/// (H(a)/H0)² a³, which stays finite at a = 0.
double hubble_squared_a3(const Cosmology& cosmology, double a) {
  return cosmology.omega_m + (1.0 - cosmology.omega_m) * a * a * a;
}

/// H(a) ∫₀ᵃ da'/(a' H(a'))³, up to a constant. With a' = a x² the integrand is smooth at 0, so that Simpson's rule
/// converges fast.
double growth_integral(const Cosmology& cosmology, double a) {
  constexpr int steps = 512;
  double sum = 0.0;
  for (int i = 0; i <= steps; ++i) {
    const double x = static_cast<double>(i) / steps;
    const double b = a * x * x;
    const double integrand = std::pow(b / hubble_squared_a3(cosmology, b), 1.5) * 2.0 * a * x;
    sum += integrand * (i == 0 || i == steps ? 1.0 : (i % 2 == 1 ? 4.0 : 2.0));
  }
  return std::sqrt(hubble_squared_a3(cosmology, a) / (a * a * a)) * sum / (3.0 * steps);
}

}  // namespace

double matter_fraction(const Cosmology& cosmology, double redshift) {
  const double a = 1.0 / (1.0 + redshift);
  return cosmology.omega_m / hubble_squared_a3(cosmology, a);
}

double growth_first_order(const Cosmology& cosmology, double redshift) {
  return growth_integral(cosmology, 1.0 / (1.0 + redshift)) / growth_integral(cosmology, 1.0);
}

double growth_second_order(const Cosmology& cosmology, double redshift) {
  const double d1 = growth_first_order(cosmology, redshift);
  return -3.0 / 7.0 * d1 * d1 * std::pow(matter_fraction(cosmology, redshift), -1.0 / 143.0);
}

}  // namespace halograd
