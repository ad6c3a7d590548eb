#pragma once

#include "kernels/chain_cases.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace halograd::test {

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

/// Calls `body(index)` for every voxel of the box.
template <typename Body>
void for_each_index(const Box& box, const Body& body) {
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) body(Index{d, h, w});
    }
  }
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

/// A tensor over `box` in a buffer of `layout`, behind half of the spare channels; all around it stands `canary`.
template <typename T>
class LaidOutAs {
public:
  LaidOutAs(const ChainDesc& desc, const VoxelLayout& layout, const Box& box, const std::vector<float>& values,
            float canary)
      : desc_(desc),
        layout_(layout),
        box_(box),
        canary_(canary),
        buffer_(static_cast<std::size_t>(desc.samples * layout.sample_elements()), canary_) {
    std::size_t next = 0;
    for_each_place([&](std::size_t at, bool mine) {
      if (mine) buffer_[at] = static_cast<T>(values[next++]);
    });
  }

  [[nodiscard]] T* data() { return buffer_.data() + lead(); }
  /// Elements of the buffer before the tensor's first channel.
  [[nodiscard]] std::int64_t lead() const { return (layout_.pitch - desc_.channels) / 2; }
  [[nodiscard]] std::vector<T>& buffer() { return buffer_; }

  /// The tensor, dense over its box.
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> result;
    for_each_place([&](std::size_t at, bool mine) {
      if (mine) result.push_back(static_cast<float>(buffer_[at]));
    });
    return result;
  }

  /// Whether all that stands around the tensor is what stood there at first, bit by bit.
  [[nodiscard]] bool surroundings_kept() const {
    bool kept = true;
    for_each_place([&](std::size_t at, bool mine) {
      if (!mine && std::memcmp(&buffer_[at], &canary_, sizeof(T)) != 0) kept = false;
    });
    return kept;
  }

private:
  template <typename Body>
  void for_each_place(const Body& body) const {
    std::size_t at = 0;
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      for_each_index(layout_.box, [&](const Index& voxel) {
        for (std::int64_t c = -lead(); c < layout_.pitch - lead(); ++c) {
          body(at++, box_.contains(voxel) && c >= 0 && c < desc_.channels);
        }
      });
    }
  }

  ChainDesc desc_;
  VoxelLayout layout_;
  Box box_;
  T canary_;
  std::vector<T> buffer_;
};

using LaidOut = LaidOutAs<float>;

constexpr float untouched = -77.0F;
inline const float nan_value = std::numeric_limits<float>::quiet_NaN();

/// The samples that share statistics, set by set: [begin, end) and the set's number.
template <typename Body>
void for_each_set(std::int64_t samples, bool per_sample, const Body& body) {
  if (!per_sample) return body(std::int64_t{0}, samples, std::size_t{0});
  for (std::int64_t n = 0; n < samples; ++n) body(n, n + 1, static_cast<std::size_t>(n));
}

inline std::size_t set_count(const ChainDesc& desc) {
  return static_cast<std::size_t>(desc.per_sample ? desc.samples : 1);
}

/// Mean and summed squared distance from it, in double, of a dense tensor [N, voxels, C]: [sets · C] each.
struct Moments {
  std::vector<double> mean, m2;
  double count = 0;
};

template <typename T>
Moments moments_by_definition(std::int64_t samples, std::int64_t channels, bool per_sample,
                              const std::vector<T>& tensor) {
  Moments result;
  for_each_set(samples, per_sample, [&](std::int64_t begin, std::int64_t end, std::size_t) {
    const std::size_t step = static_cast<std::size_t>(channels);
    const std::size_t sample = tensor.size() / static_cast<std::size_t>(samples);
    const std::size_t first = static_cast<std::size_t>(begin) * sample;
    const std::size_t last = static_cast<std::size_t>(end) * sample;
    result.count = static_cast<double>((last - first) / step);
    for (std::size_t c = 0; c < step; ++c) {
      double mean = 0;
      double m2 = 0;
      for (std::size_t i = first + c; i < last; i += step) mean += static_cast<double>(tensor[i]) / result.count;
      for (std::size_t i = first + c; i < last; i += step) m2 += std::pow(static_cast<double>(tensor[i]) - mean, 2);
      result.mean.push_back(mean);
      result.m2.push_back(m2);
    }
  });
  return result;
}

/// One set of normalisation numbers, positive scales, centred shifts.
struct NormNumbers {
  std::vector<float> mean, inverse_deviation, gamma, beta;
  [[nodiscard]] Normalisation view() const {
    return {mean.data(), inverse_deviation.data(), gamma.data(), beta.data()};
  }
};

/// gamma and beta at random, mean and deviation those of y (all of the tensor, or of each sample).
inline NormNumbers norm_of(const ChainDesc& desc, const std::vector<float>& y, std::uint64_t seed) {
  const Moments moments = moments_by_definition(desc.samples, desc.channels, desc.per_sample, y);
  NormNumbers numbers;
  numbers.gamma = random_values(desc.channels, seed, 0.5, 1.5);
  numbers.beta = random_values(desc.channels, seed + 1, -0.5, 0.5);
  numbers.mean.assign(moments.mean.begin(), moments.mean.end());
  for (const double m2 : moments.m2) {
    numbers.inverse_deviation.push_back(static_cast<float>(1 / std::sqrt(m2 / moments.count + 1e-5)));
  }
  return numbers;
}

/// What the statistics add to the gradient of y, from the sums over everything that shares them, `count` elements a
/// channel (Ioffe and Szegedy 2015). Without normalisation nothing.
struct StatisticsGradient {
  std::vector<double> offset, pull;

  StatisticsGradient(const ChainDesc& desc, const NormNumbers& norm, const std::vector<double>& sums, double count) {
    const auto channels = static_cast<std::size_t>(desc.channels);
    for (std::size_t i = 0; i < set_count(desc) * channels && desc.normalise; ++i) {
      const std::size_t set = i / channels;
      const std::size_t c = i % channels;
      const double scale = static_cast<double>(norm.gamma[c]) * static_cast<double>(norm.inverse_deviation[i]);
      offset.push_back(-scale * sums[2 * set * channels + c] / count);
      pull.push_back(-scale * sums[(2 * set + 1) * channels + c] / count);
    }
  }
  [[nodiscard]] NormGradient view() const {
    return offset.empty() ? NormGradient{} : NormGradient{offset.data(), pull.data()};
  }
};

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
  if (test.normalise) {
    const Moments moments = moments_by_definition(test.samples, test.channels, test.per_sample, y);
    const std::size_t set_elements = test.per_sample ? y.size() / static_cast<std::size_t>(test.samples) : y.size();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t c = i % channels;
      const std::size_t at = i / set_elements * channels + c;
      a[i] = (y[i] - moments.mean[at]) / std::sqrt(moments.m2[at] / moments.count + 1e-5) * gamma[c] + beta[c];
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

}  // namespace halograd::test
