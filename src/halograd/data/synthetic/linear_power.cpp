#include "halograd/data/synthetic/linear_power.hpp"

#include <cmath>
#include <numbers>

namespace halograd {
namespace {

constexpr double cmb_temperature = 2.7255;  // K, Fixsen 2009

/// Eqs. 19 and 20.
double pressureless_transfer(double q, double alpha, double beta) {
  const double c = 14.2 / alpha + 386.0 / (1.0 + 69.9 * std::pow(q, 1.08));
  const double l = std::log(std::numbers::e + 1.8 * beta * q);
  return l / (l + c * q * q);
}

/// Eq. 4.
double drag_redshift(double matter, double baryons) {
  const double b1 = 0.313 * std::pow(matter, -0.419) * (1.0 + 0.607 * std::pow(matter, 0.674));
  const double b2 = 0.238 * std::pow(matter, 0.223);
  return 1291.0 * std::pow(matter, 0.251) / (1.0 + 0.659 * std::pow(matter, 0.828)) *
         (1.0 + b1 * std::pow(baryons, b2));
}

/// Eq. 15.
double baryon_suppression(double y) {
  const double root = std::sqrt(1.0 + y);
  return y * (-6.0 * root + (2.0 + 3.0 * y) * std::log((root + 1.0) / (root - 1.0)));
}

}  // namespace

TransferFunction::TransferFunction(const Cosmology& cosmology) : h_(cosmology.h()) {
  const double matter = cosmology.omega_m * h_ * h_;
  const double baryons = cosmology.omega_b * h_ * h_;
  const double theta2 = std::pow(cmb_temperature / 2.7, 2);
  baryon_fraction_ = baryons / matter;
  const double cold_fraction = 1.0 - baryon_fraction_;

  // Eqs. 2 to 7: equality, drag epoch, sound horizon, Silk damping.
  const double z_equality = 2.5e4 * matter / (theta2 * theta2);
  k_equality_ = 7.46e-2 * matter / theta2;
  const double z_drag = drag_redshift(matter, baryons);
  const auto momentum_ratio = [&](double z) { return 31.5 * baryons / (theta2 * theta2) * (1000.0 / z); };
  const double r_drag = momentum_ratio(z_drag);
  const double r_equality = momentum_ratio(z_equality);
  sound_horizon_ = 2.0 / (3.0 * k_equality_) * std::sqrt(6.0 / r_equality) *
                   std::log((std::sqrt(1.0 + r_drag) + std::sqrt(r_drag + r_equality)) / (1.0 + std::sqrt(r_equality)));
  k_silk_ = 1.6 * std::pow(baryons, 0.52) * std::pow(matter, 0.73) * (1.0 + std::pow(10.4 * matter, -0.95));

  // Eqs. 11 and 12: cold dark matter.
  const double a1 = std::pow(46.9 * matter, 0.670) * (1.0 + std::pow(32.1 * matter, -0.532));
  const double a2 = std::pow(12.0 * matter, 0.424) * (1.0 + std::pow(45.0 * matter, -0.582));
  alpha_c_ = std::pow(a1, -baryon_fraction_) * std::pow(a2, -std::pow(baryon_fraction_, 3));
  const double b1 = 0.944 / (1.0 + std::pow(458.0 * matter, -0.708));
  const double b2 = std::pow(0.395 * matter, -0.0266);
  beta_c_ = 1.0 / (1.0 + b1 * (std::pow(cold_fraction, b2) - 1.0));

  // Eqs. 14, 23 and 24: baryons.
  alpha_b_ = 2.07 * k_equality_ * sound_horizon_ * std::pow(1.0 + r_drag, -0.75) *
             baryon_suppression((1.0 + z_equality) / (1.0 + z_drag));
  beta_b_ = 0.5 + baryon_fraction_ + (3.0 - 2.0 * baryon_fraction_) * std::sqrt(std::pow(17.2 * matter, 2) + 1.0);
  beta_node_ = 8.41 * std::pow(matter, 0.435);
}

double TransferFunction::operator()(double k) const {
  const double k_mpc = k * h_;
  if (k_mpc <= 0.0) return 1.0;
  const double q = k_mpc / (13.41 * k_equality_);
  const double ks = k_mpc * sound_horizon_;

  // Eqs. 17 and 18.
  const double f = 1.0 / (1.0 + std::pow(ks / 5.4, 4));
  const double cold =
      f * pressureless_transfer(q, 1.0, beta_c_) + (1.0 - f) * pressureless_transfer(q, alpha_c_, beta_c_);

  // Eqs. 21 and 22.
  const double x = ks / std::cbrt(1.0 + std::pow(beta_node_ / ks, 3));
  const double baryons = (pressureless_transfer(q, 1.0, 1.0) / (1.0 + std::pow(ks / 5.2, 2)) +
                          alpha_b_ / (1.0 + std::pow(beta_b_ / ks, 3)) * std::exp(-std::pow(k_mpc / k_silk_, 1.4))) *
                         (x < 1e-4 ? 1.0 : std::sin(x) / x);
  return baryon_fraction_ * baryons + (1.0 - baryon_fraction_) * cold;
}

double top_hat_window(double x) {
  if (x < 1e-2) return 1.0 - x * x / 10.0;
  return 3.0 * (std::sin(x) - x * std::cos(x)) / (x * x * x);
}

LinearPower::LinearPower(const Cosmology& cosmology) : transfer_(cosmology), spectral_index_(cosmology.spectral_index) {
  const double ratio = cosmology.sigma8 / sigma(8.0);
  amplitude_ = ratio * ratio;
}

double LinearPower::operator()(double k) const {
  if (k <= 0.0) return 0.0;
  const double transfer = transfer_(k);
  return amplitude_ * std::pow(k, spectral_index_) * transfer * transfer;
}

double LinearPower::sigma(double radius) const {
  // The trapezoid rule in ln k over a smooth integrand that vanishes at both ends, fine enough for its oscillations.
  const double low = std::log(1e-5 / radius);
  const double high = std::log(200.0 / radius);
  constexpr int steps = 8192;
  const double step = (high - low) / steps;
  double sum = 0.0;
  for (int i = 0; i <= steps; ++i) {
    const double k = std::exp(low + i * step);
    const double window = top_hat_window(k * radius);
    sum += k * k * k * (*this)(k)*window * window;
  }
  return std::sqrt(sum * step / (2.0 * std::numbers::pi * std::numbers::pi));
}

}  // namespace halograd
