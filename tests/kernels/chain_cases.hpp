#pragma once

#include "halograd/kernels/chain.hpp"
#include "kernels/support.hpp"

#include <algorithm>
#include <ostream>

namespace halograd::test {

/// What a chain computes, on no rank in particular: one case for the reference, the fast kernels and the gradient
/// checks.
struct ChainCase {
  const char* name = "";
  std::int64_t samples = 1;
  std::int64_t channels = 4;
  Extent extent;
  bool normalise = false;
  float negative_slope = 1;
  PoolKind pool = PoolKind::none;
  Window window = {};
  float keep = 1;
  bool per_sample = false;
  bool accumulate = false;
  // How y and the destination lie in memory: voxels around this rank's, on each side, and other tensors' channels.
  std::int64_t src_margin = 0;
  std::int64_t src_spare = 0;
  std::int64_t dst_margin = 0;
  std::int64_t dst_spare = 0;
};

inline void PrintTo(const ChainCase& test, std::ostream* out) {
  *out << test.name;
}

inline Box widened(const Box& box, std::int64_t margin) {
  return {{box.lo.d - margin, box.lo.h - margin, box.lo.w - margin},
          {box.hi.d + margin, box.hi.h + margin, box.hi.w + margin}};
}

/// The chain on one rank that holds everything.
inline ChainDesc whole_chain(const ChainCase& test) {
  ChainDesc desc;
  desc.samples = test.samples;
  desc.channels = test.channels;
  desc.in_extent = test.extent;
  desc.in = Box::whole(test.extent);
  desc.src = {widened(desc.in, test.src_margin), test.channels + test.src_spare};
  desc.normalise = test.normalise;
  desc.per_sample = test.per_sample;
  desc.negative_slope = test.negative_slope;
  desc.pool = test.pool;
  desc.window = test.window;
  desc.keep = test.keep;
  desc.out_extent = test.window.output_extent(test.extent);
  desc.out = Box::whole(desc.out_extent);
  desc.dst = {widened(desc.out, test.dst_margin), test.channels + test.dst_spare};
  desc.accumulate = test.accumulate;
  return desc;
}

/// The chain on the rank at `part` of the input partition, whose destination has `margin` more voxels on each side
/// (inside the volume).
inline ChainDesc part_chain(const ChainCase& test, const Partition& input, const Index& part, std::int64_t margin) {
  ChainDesc desc = whole_chain(test);
  const Partition output = input.derive(test.window);
  desc.in = input.box(part);
  desc.src.box = widened(desc.in, test.src_margin);
  desc.out = output.box(part);
  desc.faces = halo_of(input, output, test.window, part);
  for (int i = 0; i < 3; ++i) {
    desc.dst.box.lo[i] = std::max<std::int64_t>(0, desc.out.lo[i] - margin);
    desc.dst.box.hi[i] = std::min(desc.out_extent[i], desc.out.hi[i] + margin);
    Index below = part;
    Index above = part;
    --below[i];
    ++above[i];
    if (part[i] > 0) desc.returned.lo[i] = halo_of(input, output, test.window, below).hi[i];
    if (above[i] < input.parts()[i]) desc.returned.hi[i] = halo_of(input, output, test.window, above).lo[i];
  }
  return desc;
}

/// Pools of both kinds and windows, with and without each other part, each tensor alone in its buffer.
inline std::vector<ChainCase> dense_chain_cases() {
  const Window halve{Extent::cube(2), Extent::cube(2), {}};
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  const Window slide{Extent::cube(3), Extent::cube(1), Extent::cube(1)};
  const Window mixed{{2, 3, 1}, {2, 2, 1}, {0, 1, 0}};
  const PoolKind average = PoolKind::average;
  const PoolKind largest = PoolKind::max;
  return {
      {.name = "activation", .samples = 2, .channels = 4, .extent = {5, 4, 6}, .negative_slope = 0.01F},
      {.name = "normalise", .samples = 2, .channels = 16, .extent = {4, 5, 6}, .normalise = true},
      {.name = "normalise_relu",
       .samples = 3,
       .channels = 20,
       .extent = {5, 5, 4},
       .normalise = true,
       .negative_slope = 0},
      {.name = "dropout", .samples = 3, .channels = 32, .extent = {2, 3, 4}, .negative_slope = 0.01F, .keep = 0.8F},
      {.name = "average2",
       .samples = 2,
       .channels = 3,
       .extent = {8, 6, 7},
       .negative_slope = 0.01F,
       .pool = average,
       .window = halve},
      {.name = "average3",
       .samples = 1,
       .channels = 16,
       .extent = {9, 8, 7},
       .negative_slope = 0.01F,
       .pool = average,
       .window = centred},
      {.name = "average3_slide",
       .samples = 2,
       .channels = 20,
       .extent = {6, 6, 6},
       .negative_slope = 0,
       .pool = average,
       .window = slide},
      {.name = "max2",
       .samples = 2,
       .channels = 32,
       .extent = {6, 8, 6},
       .negative_slope = 0.01F,
       .pool = largest,
       .window = halve},
      {.name = "max3",
       .samples = 2,
       .channels = 4,
       .extent = {8, 9, 8},
       .negative_slope = 0.5F,
       .pool = largest,
       .window = centred},
      {.name = "mixed_windows",
       .samples = 2,
       .channels = 7,
       .extent = {8, 7, 6},
       .negative_slope = 0.1F,
       .pool = average,
       .window = mixed},
      {.name = "norm_average3",
       .samples = 2,
       .channels = 16,
       .extent = {8, 7, 9},
       .normalise = true,
       .negative_slope = 0.01F,
       .pool = average,
       .window = centred},
      {.name = "norm_max2",
       .samples = 2,
       .channels = 20,
       .extent = {7, 6, 8},
       .normalise = true,
       .negative_slope = 0.01F,
       .pool = largest,
       .window = halve},
      {.name = "everything",
       .samples = 2,
       .channels = 32,
       .extent = {8, 8, 6},
       .normalise = true,
       .negative_slope = 0.01F,
       .pool = largest,
       .window = centred,
       .keep = 0.7F},
      {.name = "wide",
       .samples = 1,
       .channels = 256,
       .extent = {4, 4, 5},
       .normalise = true,
       .negative_slope = 0.01F,
       .pool = average,
       .window = centred},
  };
}

/// Tensors that share their buffers with others: slices of wider tensors and boxes with margins, as U-Nets have them.
inline std::vector<ChainCase> laid_out_chain_cases() {
  const Window halve{Extent::cube(2), Extent::cube(2), {}};
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  std::vector<ChainCase> result = {
      {.name = "norm_into_slice",
       .samples = 2,
       .channels = 16,
       .extent = {4, 5, 6},
       .normalise = true,
       .negative_slope = 0,
       .dst_spare = 32},
      {.name = "max2_of_slice",
       .samples = 2,
       .channels = 16,
       .extent = {6, 4, 6},
       .pool = PoolKind::max,
       .window = halve,
       .accumulate = true,
       .src_margin = 1,
       .src_spare = 32},
      {.name = "average3_instances",
       .samples = 3,
       .channels = 16,
       .extent = {6, 5, 7},
       .normalise = true,
       .negative_slope = 0.01F,
       .pool = PoolKind::average,
       .window = centred,
       .per_sample = true},
      {.name = "add_copy", .samples = 2, .channels = 5, .extent = {4, 4, 4}, .accumulate = true, .dst_spare = 2},
  };
  static const std::vector<std::string> names = {"random0", "random1", "random2", "random3", "random4",
                                                 "random5", "random6", "random7", "random8", "random9"};
  Dice dice(20);
  for (const std::string& name : names) {
    const auto either = [&] { return dice.between(0, 1) == 1; };
    ChainCase test{.name = name.c_str(),
                   .samples = dice.between(1, 3),
                   .channels = dice.one_of<std::int64_t>({1, 3, 4, 16, 21, 33})};
    for (int i = 0; i < 3; ++i) test.extent[i] = dice.between(4, 7);
    test.normalise = either();
    test.negative_slope = dice.one_of<float>({1, 0.01F, 0});
    test.pool = dice.one_of<PoolKind>({PoolKind::none, PoolKind::average, PoolKind::max, PoolKind::max});
    if (test.pool != PoolKind::none) test.window = either() ? halve : centred;
    test.keep = either() ? 1 : 0.75F;
    test.per_sample = either();
    test.accumulate = either();
    test.src_margin = dice.between(0, 2);
    test.src_spare = dice.one_of<std::int64_t>({0, 3, 16});
    test.dst_margin = dice.between(0, 1);
    test.dst_spare = dice.one_of<std::int64_t>({0, 5, 16});
    result.push_back(test);
  }
  return result;
}

/// The chains that every test runs through.
inline std::vector<ChainCase> chain_cases() {
  std::vector<ChainCase> result = dense_chain_cases();
  for (const ChainCase& test : laid_out_chain_cases()) result.push_back(test);
  return result;
}

}  // namespace halograd::test
