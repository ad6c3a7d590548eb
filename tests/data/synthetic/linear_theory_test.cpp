#include <gtest/gtest.h>

#include <cmath>

#include "halograd/data/synthetic/growth.hpp"
#include "halograd/data/synthetic/linear_power.hpp"

namespace halograd {
namespace {

/// Eisenstein & Hu 1998, eqs. 26 and 28 to 31: the transfer function without oscillations, a fit of its own.
double smooth_transfer(const Cosmology& cosmology, double k) {
  const double h = cosmology.h();
  const double matter = cosmology.omega_m * h * h;
  const double baryons = cosmology.omega_b * h * h;
  const double fraction = baryons / matter;
  const double theta = 2.7255 / 2.7;
  const double s = 44.5 * std::log(9.83 / matter) / std::sqrt(1.0 + 10.0 * std::pow(baryons, 0.75));
  const double alpha =
      1.0 - 0.328 * std::log(431.0 * matter) * fraction + 0.38 * std::log(22.3 * matter) * fraction * fraction;
  const double shape = cosmology.omega_m * h * (alpha + (1.0 - alpha) / (1.0 + std::pow(0.43 * k * h * s, 4)));
  const double q = k * theta * theta / shape;
  const double l = std::log(2.0 * std::exp(1.0) + 1.8 * q);
  return l / (l + (14.2 + 731.0 / (1.0 + 62.5 * q)) * q * q);
}

TEST(TransferFunction, OscillatesAroundTheFitWithoutOscillations) {
  for (const float place : {-1.0F, 0.0F, 1.0F}) {
    const Cosmology cosmology = cosmology_at({place, 0.0F, 0.0F, 0.0F});
    const TransferFunction transfer(cosmology);
    EXPECT_NEAR(transfer(1e-5), 1.0, 1e-3);
    for (double k = 1e-3; k < 10.0; k *= 1.07) {
      EXPECT_NEAR(transfer(k) / smooth_transfer(cosmology, k), 1.0, k < 0.3 ? 0.09 : 0.05) << "k = " << k;
    }
  }
}

TEST(LinearPower, HasTheDrawnSigma8) {
  for (const float place : {-1.0F, -0.3F, 0.8F}) {
    const Cosmology cosmology = cosmology_at({place, -place, place, -place});
    EXPECT_NEAR(LinearPower(cosmology).sigma(8.0), cosmology.sigma8, 1e-9);
  }
}

TEST(LinearPower, TurnsOverAndTiltsAsItShould) {
  const LinearPower power(Cosmology{});
  EXPECT_EQ(power(0.0), 0.0);
  // Planck: the maximum is near 0.016 h/Mpc and about 2.5e4 (Mpc/h)³; P ∝ k^n_s far above it.
  EXPECT_GT(power(0.016), power(0.008));
  EXPECT_GT(power(0.016), power(0.032));
  EXPECT_NEAR(power(0.016), 2.5e4, 0.15e4);
  EXPECT_NEAR(std::log(power(2e-5) / power(1e-5)) / std::log(2.0), 0.9667, 1e-3);
}

TEST(Growth, IsTheScaleFactorWithoutDarkEnergy) {
  const Cosmology flat{.omega_m = 1.0};
  for (const double z : {0.0, 0.5, 1.5, 3.0}) {
    EXPECT_NEAR(growth_first_order(flat, z), 1.0 / (1.0 + z), 1e-9);
    EXPECT_NEAR(growth_second_order(flat, z), -3.0 / 7.0 / ((1.0 + z) * (1.0 + z)), 1e-9);
  }
}

TEST(Growth, AgreesWithCarrollPressTurner) {
  // Carroll, Press & Turner 1992 (ARA&A 30, 499, eq. 29), good to about 1 %.
  const auto suppression = [](double m) {
    const double l = 1.0 - m;
    return 2.5 * m / (std::pow(m, 4.0 / 7.0) - l + (1.0 + m / 2.0) * (1.0 + l / 70.0));
  };
  for (const float place : {-1.0F, 0.0F, 1.0F}) {
    const Cosmology cosmology = cosmology_at({place, 0.0F, 0.0F, 0.0F});
    for (const double z : {0.5, 1.5, 3.0}) {
      const double fit = suppression(matter_fraction(cosmology, z)) / (1.0 + z) / suppression(cosmology.omega_m);
      EXPECT_NEAR(growth_first_order(cosmology, z) / fit, 1.0, 0.01) << "z = " << z;
    }
  }
}

}  // namespace
}  // namespace halograd
