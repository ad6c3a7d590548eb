#pragma once

#include <vector>

#include "halograd/core/random.hpp"
#include "halograd/data/synthetic/lagrangian.hpp"

namespace halograd {

/// Moves particles by `displacement` (spline coefficients, see `displace`) and adds each to the voxel it ends in:
/// `counts` [W,W,W], periodic, cleared first.
///
/// Each voxel starts with `particles_per_side`³ particles, one at a random place in each of as many equal cells. The
/// expected count is thus the exact mass of the displaced fluid in the voxel, without the pattern that a lattice leaves
/// where it moves little, and the noise is far below that of particles thrown at random. The places depend on `jitter`
/// and the particle alone: every redshift moves the same particles.
void count_particles(const Displacement& displacement, std::int64_t width, std::int64_t particles_per_side,
                     const RandomStream& jitter, std::vector<std::uint32_t>& counts);

}  // namespace halograd
