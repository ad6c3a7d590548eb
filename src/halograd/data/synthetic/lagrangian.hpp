#pragma once

#include <array>

#include "halograd/data/synthetic/fourier.hpp"

namespace halograd {

/// Displacements in voxels along depth, height and width, at the voxels' centres: each [W,W,W].
using Displacement = std::array<RealField, 3>;

/// The modes of the second-order source Σ_{i>j} (φ,ii φ,jj − φ,ij²) with ∇²φ = δ, of second-order Lagrangian
/// perturbation theory (Bouchet et al. 1995, A&A 296, 575; Scoccimarro 1998, MNRAS 299, 1097, appendix D).
///
/// δ is smoothed by a Gaussian of `smoothing` Mpc/h first; 0 leaves it as it is.
ModeField second_order_source(const Fourier3d& fourier, const ModeGrid& grid, const ModeField& density,
                              double smoothing);

/// The displacement x − q = −D1 ∇φ1 + D2 ∇φ2 (Scoccimarro 1998, eq. D1), where ∇²φ1 is `density` and ∇²φ2 is `source`;
/// `d2` is negative. It is made for interpolation by quadratic splines: the values are the coefficients of the spline
/// that goes through the displacements (Unser 1999, IEEE Signal Process. Mag. 16(6), 22).
void displace(const Fourier3d& fourier, const ModeGrid& grid, const ModeField& density, const ModeField& source,
              double d1, double d2, Displacement& displacement);

}  // namespace halograd
