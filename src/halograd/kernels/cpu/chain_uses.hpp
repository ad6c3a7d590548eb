#pragma once

#include "halograd/kernels/cpu/chain_rows.hpp"

#include <algorithm>
#include <type_traits>

namespace halograd::cpu {

template <typename T>
Row<T> from_voxel(const Row<T>& row, std::int64_t at) {
  return {row.data + at * row.pitch, row.pitch};
}

inline void clear(const Row<float>& row, const RowShape& shape) {
  const bool dense = row.pitch == shape.channels;
  if (dense) return void(std::fill_n(row.data, shape.voxels * shape.channels, 0.0F));
  for (std::int64_t i = 0; i < shape.voxels; ++i) std::fill_n(row.data + i * row.pitch, shape.channels, 0.0F);
}

// What a row's gradient is used for. `voxels` and `pairs` take da that stands somewhere already; `target` says where to
// gather the rest, from what stands there on, and `gathered` that it is done.

/// Gathers into scratch memory, one part of a row after the other.
struct ScratchTarget {
  std::int64_t channels;
  float* scratch;

  [[nodiscard]] Row<float> target(std::int64_t, std::int64_t count) const {
    const Row<float> da{scratch, channels};
    clear(da, {count, channels});
    return da;
  }
};

/// Makes the two sums of each channel.
template <typename T>
struct SumsUse : ScratchTarget {
  const Activation& activation;
  Row<const T> y;  ///< from the row's first own voxel
  double* plain;
  double* weighted;
  static constexpr bool takes_pairs = true;

  template <typename Given>
  void voxels(std::int64_t at, std::int64_t count, const Gain& gain, const Row<const Given>& da) const {
    row_kernels<GradientKernels<T, Given>>().sums(activation, gain, {count, channels}, from_voxel(y, at), da, plain,
                                                  weighted);
  }
  void gathered(std::int64_t at, std::int64_t count, const Row<float>& da) const {
    voxels<float>(at, count, {1, activation.slope}, {da.data, da.pitch});
  }
  template <typename Given>
  void pairs(std::int64_t at, const PairShape& shape, const Gain& gain, const Given* const* g) const {
    row_kernels<GradientKernels<T, Given>>().sums_pairs(activation, gain, shape, y.data + at * channels, g, plain,
                                                        weighted);
  }
};

/// Makes dy.
template <typename T>
struct DataUse : ScratchTarget {
  const Activation& activation;
  const Correction& correction;
  Row<const T> y;  ///< from the row's first own voxel
  Row<T> dy;       ///< likewise
  bool accumulate;
  static constexpr bool takes_pairs = true;

  template <typename Given>
  void voxels(std::int64_t at, std::int64_t count, const Gain& gain, const Row<const Given>& da) const {
    row_kernels<GradientKernels<T, Given>>().data(activation, correction, gain, {count, channels}, from_voxel(y, at),
                                                  da, from_voxel(dy, at), accumulate);
  }
  void gathered(std::int64_t at, std::int64_t count, const Row<float>& da) const {
    voxels<float>(at, count, {1, activation.slope}, {da.data, da.pitch});
  }
  template <typename Given>
  void pairs(std::int64_t at, const PairShape& shape, const Gain& gain, const Given* const* g) const {
    row_kernels<GradientKernels<T, Given>>().data_pairs(activation, correction, gain, shape, y.data + at * channels, g,
                                                        dy.data + at * channels);
  }
};

/// Makes dy where it is da, without a look at y: gathered where it belongs or, in bf16, in scratch memory, so that it
/// is rounded once.
template <typename T>
struct PlainUse {
  std::int64_t channels;
  float* scratch;
  Row<T> dy;  ///< from the row's first own voxel
  bool accumulate;
  static constexpr bool takes_pairs = false;

  template <typename Given>
  void voxels(std::int64_t at, std::int64_t count, const Gain&, const Row<const Given>& da) const {
    const auto& moves = row_kernels<MoveKernels<Given, T>>();
    (accumulate ? moves.add_row : moves.copy_row)({count, channels}, da, from_voxel(dy, at));
  }
  [[nodiscard]] Row<float> target(std::int64_t at, std::int64_t count) const {
    const Row<T> place = from_voxel(dy, at);
    const RowShape shape{count, channels};
    if constexpr (std::is_same_v<T, float>) {
      if (!accumulate) clear(place, shape);
      return place;
    } else {
      const Row<float> da{scratch, channels};
      if (accumulate) row_kernels<MoveKernels<T, float>>().copy_row(shape, {place.data, place.pitch}, da);
      if (!accumulate) clear(da, shape);
      return da;
    }
  }
  void gathered(std::int64_t at, std::int64_t count, const Row<float>& da) const {
    if constexpr (!std::is_same_v<T, float>) {
      row_kernels<MoveKernels<float, T>>().copy_row({count, channels}, {da.data, da.pitch}, from_voxel(dy, at));
    }
  }
};

}  // namespace halograd::cpu
