#pragma once

#include "kernels/chain_support.hpp"
#include "kernels/placed_chains.hpp"

#include "halograd/core/bf16.hpp"

namespace halograd::test {

/// What activations of type T can hold of these values.
template <typename T>
std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = static_cast<float>(static_cast<T>(value));
  return values;
}

template <typename T>
std::vector<T> as_type(const std::vector<float>& values) {
  std::vector<T> result;
  for (const float value : values) result.push_back(static_cast<T>(value));
  return result;
}

template <typename T>
std::vector<float> as_floats(const std::vector<T>& values) {
  std::vector<float> result;
  for (const T value : values) result.push_back(static_cast<float>(value));
  return result;
}

/// Chains that fill a block's slices of channels only in part.
inline std::vector<ChainCase> sliced_chain_cases() {
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  ChainCase four{.name = "slices_of_4",
                 .samples = 2,
                 .channels = 132,
                 .extent = {3, 4, 5},
                 .normalise = true,
                 .negative_slope = 0.01F,
                 .pool = PoolKind::average,
                 .window = centred};
  ChainCase eight = four;
  eight.name = "slices_of_8";
  eight.channels = 264;
  eight.pool = PoolKind::max;
  eight.window = {Extent::cube(2), Extent::cube(2), {}};
  return {four, eight};
}

/// Enough voxels for all threads of a large GPU.
inline std::vector<PlacedChain> large_chains() {
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  ChainCase average{.name = "large_average3",
                    .samples = 1,
                    .channels = 32,
                    .extent = {32, 36, 40},
                    .normalise = true,
                    .negative_slope = 0.01F,
                    .pool = PoolKind::average,
                    .window = centred};
  ChainCase largest = average;
  largest.name = "large_max2";
  largest.pool = PoolKind::max;
  largest.window = {Extent::cube(2), Extent::cube(2), {}};
  largest.keep = 0.75F;
  ChainCase plain = average;
  plain.name = "large_plain";
  plain.channels = 33;
  plain.pool = PoolKind::none;
  plain.window = {};
  plain.accumulate = true;
  return {{average.name, whole_chain(average)}, {largest.name, whole_chain(largest)}, {plain.name, whole_chain(plain)}};
}

/// On one rank and on every rank of several grids, all chains.
inline std::vector<PlacedChain> placed_chains() {
  std::vector<ChainCase> cases = chain_cases();
  for (const ChainCase& test : sliced_chain_cases()) cases.push_back(test);
  return placed_chains(cases, {{2, 1, 1}, {1, 2, 2}, {3, 1, 2}, {2, 2, 2}});
}

/// Faces with random values, or (of the buffers inside the box) gradients.
template <typename T>
Faces<float> random_faces(const ChainDesc& desc, bool inside, std::uint64_t seed) {
  Faces<float> faces;
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) {
      const Box box = inside ? returned_voxels(desc, i, high) : face_voxels(desc, i, high);
      faces.side(i, high) = rounded<T>(random_values(elements(desc, box), seed++));
    }
  }
  return faces;
}

template <typename T>
Faces<T> typed_faces(Faces<float>& faces) {
  Faces<T> result;
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) result.side(i, high) = as_type<T>(faces.side(i, high));
  }
  return result;
}

}  // namespace halograd::test
