#pragma once

#include "halograd/kernels/chain.hpp"
#include "kernels/support.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
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
};

inline void PrintTo(const ChainCase& test, std::ostream* out) {
  *out << test.name;
}

/// The chain on one rank that holds everything.
inline ChainDesc whole_chain(const ChainCase& test) {
  ChainDesc desc;
  desc.samples = test.samples;
  desc.channels = test.channels;
  desc.in_extent = test.extent;
  desc.in = Box::whole(test.extent);
  desc.normalise = test.normalise;
  desc.negative_slope = test.negative_slope;
  desc.pool = test.pool;
  desc.window = test.window;
  desc.keep = test.keep;
  desc.out_extent = test.window.output_extent(test.extent);
  desc.out = Box::whole(desc.out_extent);
  desc.dst = desc.out;
  return desc;
}

/// The chain on the rank at `part` of the input partition, whose destination has `margin` more voxels on each side
/// (inside the volume).
inline ChainDesc part_chain(const ChainCase& test, const Partition& input, const Index& part, std::int64_t margin) {
  ChainDesc desc = whole_chain(test);
  const Partition output = input.derive(test.window);
  desc.in = input.box(part);
  desc.out = output.box(part);
  desc.dst = desc.out;
  desc.faces = halo_of(input, output, test.window, part);
  for (int i = 0; i < 3; ++i) {
    desc.dst.lo[i] = std::max<std::int64_t>(0, desc.out.lo[i] - margin);
    desc.dst.hi[i] = std::min(desc.out_extent[i], desc.out.hi[i] + margin);
    Index below = part;
    Index above = part;
    --below[i];
    ++above[i];
    if (part[i] > 0) desc.returned.lo[i] = halo_of(input, output, test.window, below).hi[i];
    if (above[i] < input.parts()[i]) desc.returned.hi[i] = halo_of(input, output, test.window, above).lo[i];
  }
  return desc;
}

/// Elements of [N,D,H,W,C] over a box.
inline std::int64_t elements(const ChainDesc& desc, const Box& box) {
  return desc.samples * box.volume() * desc.channels;
}

/// The voxels of a face buffer (outside the box), and those of the buffer that a neighbour's gradients come home in
/// (inside it), worked out here from the words of chain.hpp.
inline Box face_voxels(const ChainDesc& desc, int dimension, bool high) {
  Box box = desc.in;
  for (int i = 0; i < dimension; ++i) {
    box.lo[i] -= desc.faces.lo[i];
    box.hi[i] += desc.faces.hi[i];
  }
  if (high) {
    box.lo[dimension] = desc.in.hi[dimension];
    box.hi[dimension] = desc.in.hi[dimension] + desc.faces.hi[dimension];
  } else {
    box.lo[dimension] = desc.in.lo[dimension] - desc.faces.lo[dimension];
    box.hi[dimension] = desc.in.lo[dimension];
  }
  return box;
}

inline Box returned_voxels(const ChainDesc& desc, int dimension, bool high) {
  Box box = face_voxels(desc, dimension, high);
  box.lo[dimension] = high ? desc.in.hi[dimension] - desc.returned.hi[dimension] : desc.in.lo[dimension];
  box.hi[dimension] = high ? desc.in.hi[dimension] : desc.in.lo[dimension] + desc.returned.lo[dimension];
  return box;
}

/// The part of a [N,D,H,W,C] tensor over box `from` that lies in `to`; voxels outside `from` become `fill`.
template <typename T>
std::vector<T> cut(const ChainDesc& desc, const std::vector<T>& tensor, const Box& from, const Box& to, T fill) {
  std::vector<T> result;
  const Extent extent = from.extent();
  for (std::int64_t n = 0; n < desc.samples; ++n) {
    for (std::int64_t d = to.lo.d; d < to.hi.d; ++d) {
      for (std::int64_t h = to.lo.h; h < to.hi.h; ++h) {
        for (std::int64_t w = to.lo.w; w < to.hi.w; ++w) {
          const std::int64_t voxel =
              ((n * extent.d + d - from.lo.d) * extent.h + h - from.lo.h) * extent.w + w - from.lo.w;
          for (std::int64_t c = 0; c < desc.channels; ++c) {
            const bool inside = from.contains(Index{d, h, w});
            result.push_back(inside ? tensor[static_cast<std::size_t>(voxel * desc.channels + c)] : fill);
          }
        }
      }
    }
  }
  return result;
}

/// Storage of face buffers: an empty vector where the width is 0.
template <typename T>
struct Faces {
  std::array<std::vector<T>, 3> lo, hi;

  [[nodiscard]] std::vector<T>& side(int dimension, bool high) {
    return high ? hi[static_cast<std::size_t>(dimension)] : lo[static_cast<std::size_t>(dimension)];
  }
  template <typename Pointer>
  [[nodiscard]] FaceBuffers<Pointer> buffers() {
    FaceBuffers<Pointer> result;
    for (std::size_t i = 0; i < 3; ++i) {
      result.lo[i] = lo[i].empty() ? nullptr : lo[i].data();
      result.hi[i] = hi[i].empty() ? nullptr : hi[i].data();
    }
    return result;
  }
};

/// One set of normalisation numbers, positive scales, centred shifts.
struct NormNumbers {
  std::vector<float> mean, inverse_deviation, gamma, beta;
  [[nodiscard]] Normalisation view() const {
    return {mean.data(), inverse_deviation.data(), gamma.data(), beta.data()};
  }
};

/// gamma and beta at random, mean and deviation those of y (all of the tensor).
inline NormNumbers batch_norm_of(const ChainDesc& desc, const std::vector<float>& y, std::uint64_t seed) {
  NormNumbers numbers;
  numbers.gamma = random_values(desc.channels, seed, 0.5, 1.5);
  numbers.beta = random_values(desc.channels, seed + 1, -0.5, 0.5);
  const auto channels = static_cast<std::size_t>(desc.channels);
  const double count = static_cast<double>(y.size() / channels);
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = c; i < y.size(); i += channels) sum += static_cast<double>(y[i]);
    for (std::size_t i = c; i < y.size(); i += channels)
      squares += std::pow(static_cast<double>(y[i]) - sum / count, 2);
    numbers.mean.push_back(static_cast<float>(sum / count));
    numbers.inverse_deviation.push_back(static_cast<float>(1 / std::sqrt(squares / count + 1e-5)));
  }
  return numbers;
}

/// Calls `body(index)` for every voxel of the box.
template <typename Body>
void for_each_index(const Box& box, const Body& body) {
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) body(Index{d, h, w});
    }
  }
}

inline std::size_t element_at(const ChainDesc& desc, const Box& box, std::int64_t n, const Index& at, std::int64_t c) {
  const Extent e = box.extent();
  const std::int64_t voxel = ((n * e.d + at.d - box.lo.d) * e.h + at.h - box.lo.h) * e.w + at.w - box.lo.w;
  return static_cast<std::size_t>(voxel * desc.channels + c);
}

/// z, then the activation, of the whole tensor in double, normalised with the statistics of y itself.
inline std::vector<double> naive_activation(const ChainCase& test, const std::vector<double>& y,
                                            const std::vector<double>& gamma, const std::vector<double>& beta) {
  std::vector<double> a = y;
  const auto channels = static_cast<std::size_t>(test.channels);
  const double count = static_cast<double>(y.size() / channels);
  for (std::size_t c = 0; c < channels && test.normalise; ++c) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = c; i < y.size(); i += channels) mean += y[i] / count;
    for (std::size_t i = c; i < y.size(); i += channels) variance += (y[i] - mean) * (y[i] - mean) / count;
    for (std::size_t i = c; i < y.size(); i += channels) {
      a[i] = (y[i] - mean) / std::sqrt(variance + 1e-5) * gamma[c] + beta[c];
    }
  }
  for (double& value : a) value = value > 0 ? value : static_cast<double>(test.negative_slope) * value;
  return a;
}

/// The whole chain by its definition, in double.
inline std::vector<double> naive_chain(const ChainCase& test, const std::vector<double>& y,
                                       const std::vector<double>& gamma, const std::vector<double>& beta,
                                       const DropoutKey& dropout) {
  const ChainDesc desc = whole_chain(test);
  const std::vector<double> a = naive_activation(test, y, gamma, beta);
  std::vector<double> result(static_cast<std::size_t>(elements(desc, desc.out)));
  for (std::int64_t n = 0; n < test.samples; ++n) {
    for_each_index(desc.out, [&](const Index& out) {
      for (std::int64_t c = 0; c < test.channels; ++c) {
        double sum = 0;
        double largest = -std::numeric_limits<double>::infinity();
        for_each_index(Box::whole(test.window.kernel), [&](const Index& tap) {
          Index in;
          for (int i = 0; i < 3; ++i) in[i] = out[i] * test.window.stride[i] - test.window.padding[i] + tap[i];
          if (!desc.in.contains(in)) return;
          const double value = a[element_at(desc, desc.in, n, in, c)];
          sum += value;
          largest = std::max(largest, value);
        });
        double value = test.pool == PoolKind::max ? largest : sum / static_cast<double>(test.window.kernel.volume());
        const auto global = element_at(desc, desc.out, n + dropout.first_sample, out, c);
        if (test.keep < 1)
          value = dropout.stream.uniform(global) < test.keep ? value / static_cast<double>(test.keep) : 0;
        result[element_at(desc, desc.out, n, out, c)] = value;
      }
    });
  }
  return result;
}

/// The chains that every test runs through: pools of both kinds and windows, with and without each other part.
inline std::vector<ChainCase> chain_cases() {
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

}  // namespace halograd::test
