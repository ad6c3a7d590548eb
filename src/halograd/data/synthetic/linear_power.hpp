#pragma once

#include "halograd/data/synthetic/cosmology.hpp"

namespace halograd {

/// The matter transfer function with baryon oscillations of Eisenstein & Hu 1998 (ApJ 496, 605, section 3).
class TransferFunction {
public:
  explicit TransferFunction(const Cosmology& cosmology);

  /// T(k), 1 at large scales. `k` in h/Mpc.
  [[nodiscard]] double operator()(double k) const;

private:
  double h_;
  double baryon_fraction_;
  double k_equality_;  // 1/Mpc, as every length below is in Mpc
  double sound_horizon_;
  double k_silk_;
  double alpha_c_;
  double beta_c_;
  double alpha_b_;
  double beta_b_;
  double beta_node_;
};

/// The Fourier transform of a sphere's top hat, 3 (sin x − x cos x) / x³.
double top_hat_window(double x);

/// The linear power spectrum of matter today, P(k) ∝ k^n_s T²(k), scaled to the cosmology's σ8.
class LinearPower {
public:
  explicit LinearPower(const Cosmology& cosmology);

  /// P(k) in (Mpc/h)³; `k` in h/Mpc, 0 gives 0.
  [[nodiscard]] double operator()(double k) const;

  /// The rms of matter in spheres of `radius` Mpc/h: σ² = ∫ dk k² P(k) W²(k radius) / 2π².
  [[nodiscard]] double sigma(double radius) const;

private:
  TransferFunction transfer_;
  double spectral_index_;
  double amplitude_ = 1.0;
};

}  // namespace halograd
