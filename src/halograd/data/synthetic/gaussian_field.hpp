#pragma once

#include "halograd/data/synthetic/fourier.hpp"
#include "halograd/data/synthetic/linear_power.hpp"

namespace halograd {

/// The modes δ(k) of a Gaussian density contrast with spectrum `power`: δ(x) = Σ_k δ(k) exp(i k x), so that
/// ⟨|δ(k)|²⟩ = P(k)/box³ and δ(k = 0) = 0.
///
/// White noise is drawn voxel by voxel from `noise` and transformed, so that the field is real whatever the width.
/// Modes beyond the sphere of the Nyquist frequency, in the corners of the cube, are kept.
ModeField gaussian_density(const Fourier3d& fourier, const ModeGrid& grid, const LinearPower& power,
                           const RandomStream& noise);

}  // namespace halograd
