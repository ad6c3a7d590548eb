#pragma once

#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cuda/reduction.hpp"
#include "kernels/support.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace halograd::test {

// What launch.cuh and reduction.cuh do with the threads of a GPU, thread after thread on the host. Everything that
// these threads compute is in headers that both compile.

/// Calls `body(block, thread)` for every thread of a grid.
template <typename Body>
void for_each_thread(const cuda::Grid& grid, const Body& body) {
  for (std::uint32_t block = 0; block < grid.blocks; ++block) {
    for (std::uint32_t thread = 0; thread < grid.threads; ++thread) body(block, thread);
  }
}

/// cuda::for_each_item.
template <typename Body>
void run_items(const Body& body, std::int64_t items) {
  for_each_thread(cuda::grid_for(items), [&](std::uint32_t block, std::uint32_t thread) {
    const std::uint32_t item = block * cuda::block_threads + thread;
    if (item < items) body(item);
  });
}

/// cuda::for_each_walking.
template <typename Body>
void run_walking(const Body& body, std::int64_t items) {
  const cuda::Grid grid = cuda::walking_grid(items);
  for_each_thread(grid, [&](std::int64_t block, std::uint32_t thread) {
    for (std::int64_t item = block * cuda::block_threads + thread; item < items;
         item += std::int64_t{grid.blocks} * cuda::block_threads) {
      body(item);
    }
  });
}

/// cuda::move_items with `batch` items a thread.
template <int batch, typename Body>
void run_moves(const Body& body, std::int64_t items) {
  for_each_thread(cuda::grid_for(items, batch), [&](std::uint32_t block, std::uint32_t thread) {
    std::array<decltype(body.load(0)), batch> loaded{};
    for (int turn = 0; turn < batch; ++turn) {
      const std::uint32_t item = cuda::batched_item(block, thread, batch, turn);
      if (item < items) loaded[static_cast<std::size_t>(turn)] = body.load(item);
    }
    for (int turn = 0; turn < batch; ++turn) {
      const std::uint32_t item = cuda::batched_item(block, thread, batch, turn);
      if (item < items) body.store(loaded[static_cast<std::size_t>(turn)]);
    }
  });
}

/// What lanes hold after combining those first / 2 … last apart, in all of them.
template <typename Value, typename Combine>
std::vector<Value> combine_lanes(std::vector<Value> lanes, int first, int last, const Combine& combine) {
  for (int apart = first / 2; apart >= last; apart /= 2) {
    const std::vector<Value> before = lanes;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i] = combine(before[i], before[i ^ static_cast<std::size_t>(apart)]);
    }
  }
  return lanes;
}

/// warp_sum of reduction.cuh, of lane `lane`.
inline double warp_sum(const std::vector<double>& lanes, int last = 1, std::size_t lane = 0) {
  return combine_lanes(lanes, cuda::warp_size, last, [](double a, double b) { return a + b; })[lane];
}

/// value(lane) of all lanes of a warp.
template <typename Value>
std::vector<double> of_lanes(const Value& value) {
  std::vector<double> lanes(cuda::warp_size);
  for (int lane = 0; lane < cuda::warp_size; ++lane) lanes[static_cast<std::size_t>(lane)] = value(lane);
  return lanes;
}

/// store_block_sums of reduction.cuh: value(thread) of all threads of a block.
template <typename Value>
double block_sum(const Value& value) {
  double sum = 0;
  for (int warp = 0; warp < cuda::sum_warps; ++warp) {
    sum += warp_sum(of_lanes([&](int lane) { return value(warp * cuda::warp_size + lane); }));
  }
  return sum;
}

/// merge_pieces of reduction.cuh.
inline void run_merge(const cuda::PieceSums& pieces, double* sums) {
  for (std::int64_t result = 0; result < pieces.results(); ++result) {
    const auto term = [&](std::int64_t i) { return pieces.term(result, i); };
    sums[result] = warp_sum(
        of_lanes([&](int lane) { return cuda::strided_sum(term, 0, pieces.count(result), lane, cuda::warp_size); }));
  }
}

/// Values in the type that activations are kept in, and back.
template <typename T>
std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> result;
  result.reserve(values.size());
  for (const float value : values) result.push_back(T(value));
  return result;
}
template <typename T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> result;
  result.reserve(values.size());
  for (const T value : values) result.push_back(static_cast<float>(value));
  return result;
}

/// What rounding to T may change of a number, relatively: half a unit in the last place.
template <typename T>
constexpr double half_unit = sizeof(T) == 2 ? 0x1p-8 : 0x1p-24;

/// The largest of |a − b| − half a unit of b, over all values: what is not due to rounding the result to T.
template <typename T, typename B>
double beyond_rounding(const std::vector<T>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return 1e30;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double expected = static_cast<double>(b[i]);
    const double apart = std::abs(static_cast<double>(static_cast<float>(a[i])) - expected);
    // Not a number is as wrong as can be.
    worst = std::max(worst, apart <= 1e30 ? apart - half_unit<T> * std::abs(expected) : 1e30);
  }
  return worst;
}

/// A test that runs once a type of activations.
template <typename T>
class ActivationTest : public testing::Test {};
using ActivationTypes = testing::Types<float, Bf16>;
template <typename T>
constexpr DType activation_of = sizeof(T) == 2 ? DType::bf16 : DType::f32;

}  // namespace halograd::test
