#pragma once

#include "halograd/core/types.hpp"

#include <array>
#include <cstdint>

namespace halograd {

/// Targets of a cosmological universe: Ω_M, σ8, n_s, H0.
constexpr std::int64_t cosmology_targets = 4;
using Cosmology = std::array<float, cosmology_targets>;
constexpr std::array<const char*, cosmology_targets> cosmology_parameters{"omega_m", "sigma_8", "n_s", "h_0"};

/// How a box of a sample lies in memory once it is read: its voxels as the file holds them and behind them, where the
/// file is labelled, a label of each: [D,H,W] u8.
struct SampleLayout {
  DType dtype = DType::u16;     ///< in this machine's byte order, whatever the file's
  bool channels_first = false;  ///< [C,D,H,W], else [D,H,W,C]
  bool labelled = false;
  friend bool operator==(const SampleLayout&, const SampleLayout&) = default;
};

/// What the numbers of a file stand for: number · scale + offset.
struct ValueScale {
  double scale = 1;
  double offset = 0;
  friend bool operator==(const ValueScale&, const ValueScale&) = default;
};

}  // namespace halograd
