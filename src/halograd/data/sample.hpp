#pragma once

#include "halograd/core/types.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// Targets of a cosmological universe: Ω_M, σ8, n_s, H0.
constexpr std::int64_t cosmology_targets = 4;
using Cosmology = std::array<float, cosmology_targets>;

/// How a file holds its voxels.
struct SampleLayout {
  DType dtype = DType::u16;     ///< in this machine's byte order, whatever the file's
  bool channels_first = false;  ///< [C,D,H,W], else [D,H,W,C]
  friend bool operator==(const SampleLayout&, const SampleLayout&) = default;
};

/// One rank's part of one sample, as its file holds it.
struct RawSample {
  std::string file;
  SampleLayout layout;
  std::vector<std::byte> voxels;      ///< the box asked for, dense, in `layout`
  Cosmology targets{};                ///< `unitPar`, scaled to [-1, 1]
  std::optional<Cosmology> physical;  ///< `physPar`, in physical units, where the file has it
};

}  // namespace halograd
