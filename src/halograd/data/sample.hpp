#pragma once

#include "halograd/core/types.hpp"

#include <array>
#include <cstdint>

namespace halograd {

/// Targets of a cosmological universe: Ω_M, σ8, n_s, H0.
constexpr std::int64_t cosmology_targets = 4;
using Cosmology = std::array<float, cosmology_targets>;
constexpr std::array<const char*, cosmology_targets> cosmology_parameters{"omega_m", "sigma_8", "n_s", "h_0"};

/// How a file holds its voxels.
struct SampleLayout {
  DType dtype = DType::u16;     ///< in this machine's byte order, whatever the file's
  bool channels_first = false;  ///< [C,D,H,W], else [D,H,W,C]
  friend bool operator==(const SampleLayout&, const SampleLayout&) = default;
};

}  // namespace halograd
