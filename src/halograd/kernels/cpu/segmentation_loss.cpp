#include "halograd/kernels/cpu/segmentation_loss.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace halograd::cpu {
namespace {

constexpr std::int64_t most_classes = 256;
constexpr std::int64_t most_lanes = 64;
constexpr std::int64_t block_elements = 16 * most_classes;

/// Voxels side by side, so that exponentials and logarithms fill vector registers.
std::int64_t lanes_for(std::int64_t classes) {
  return classes * most_lanes <= block_elements ? most_lanes : block_elements / most_classes;
}

/// eˣ for x ≤ 0 to a unit in the last place or two (Cephes' expf), at least e⁻⁸⁷; NaN stays NaN.
[[gnu::always_inline]] inline float exponential(float x) {
  constexpr float round = 0x1.8p23F;  // what is added to it is rounded to a whole number, in the low bits
  x = x < -87.0F ? -87.0F : x;
  const float rounded = x * 0x1.715476p0F + round;
  const float n = rounded - round;
  const float r = x - n * 0.693359375F + n * 2.12194440e-4F;
  float poly = 1.9875691500e-4F;
  poly = poly * r + 1.3981999507e-3F;
  poly = poly * r + 8.3334519073e-3F;
  poly = poly * r + 4.1665795894e-2F;
  poly = poly * r + 1.6666665459e-1F;
  poly = poly * r + 5.0000001201e-1F;
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(round) + 127) << 23;
  return (poly * r * r + r + 1.0F) * std::bit_cast<float>(power);
}

/// log(1 + u) for 0 ≤ u, as exact for tiny u (Cephes' logf of y = 1 + u, plus what y lost); NaN stays NaN.
[[gnu::always_inline]] inline float logarithm_of_one_plus(float u) {
  constexpr std::uint32_t root_half = 0x3f3504f3;
  const float y = 1.0F + u;
  const float lost = u - (y - 1.0F);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(y) - root_half;
  const float exponent = static_cast<float>(static_cast<std::int32_t>(bits) >> 23);
  const float f = std::bit_cast<float>((bits & 0x7fffffU) + root_half) - 1.0F;
  float poly = 7.0376836292e-2F;
  poly = poly * f - 1.1514610310e-1F;
  poly = poly * f + 1.1676998740e-1F;
  poly = poly * f - 1.2420140846e-1F;
  poly = poly * f + 1.4249322787e-1F;
  poly = poly * f - 1.6668057665e-1F;
  poly = poly * f + 2.0000714765e-1F;
  poly = poly * f - 2.4999993993e-1F;
  poly = poly * f + 3.3333331174e-1F;
  const float square = f * f;
  const float tail = poly * f * square - exponent * 2.12194440e-4F - 0.5F * square;
  return f + tail + exponent * 0.693359375F + lost / y;
}

/// What a run of voxels of one sample is worked out with.
template <typename T>
struct Run {
  const T* logits;
  const std::uint8_t* labels;
  std::int64_t voxels;
  std::int64_t classes;
  const float* class_weights;  ///< [classes]
  int ignore_label;
};

/// A block of voxels, class by class: p[k · lanes + v].
struct Block {
  alignas(64) std::array<float, block_elements> p;
  alignas(64) std::array<float, most_lanes> surprise;  ///< −log p of the label
  alignas(64) std::array<float, most_lanes> weight;    ///< of the label
  alignas(64) std::array<float, most_lanes> counts;    ///< 1 or, where the voxel doesn't count, 0
  alignas(64) std::array<std::int32_t, most_lanes> label;
};

/// The softmax of `used` voxels from `first` on; lanes behind them don't count.
template <typename T>
[[gnu::always_inline]] inline void softmax(const Run<T>& run, std::int64_t first, std::int64_t used, std::int64_t lanes,
                                           Block& block) {
  alignas(64) std::array<float, most_lanes> top;
  alignas(64) std::array<float, most_lanes> chosen{};
  alignas(64) std::array<double, most_lanes> others;
  float* __restrict const p = block.p.data();
  const T* const logits = run.logits + first * run.classes;
  for (std::int64_t k = 0; k < run.classes; ++k) {
    for (std::int64_t v = 0; v < used; ++v) p[k * lanes + v] = static_cast<float>(logits[v * run.classes + k]);
    for (std::int64_t v = used; v < lanes; ++v) p[k * lanes + v] = 0;
  }
  for (std::int64_t v = 0; v < used; ++v) block.label[static_cast<std::size_t>(v)] = run.labels[first + v];
  for (std::int64_t v = used; v < lanes; ++v) block.label[static_cast<std::size_t>(v)] = -1;
  const std::int32_t* __restrict const label = block.label.data();
  float* __restrict const weight = block.weight.data();
  float* __restrict const counts = block.counts.data();
  for (std::int64_t v = 0; v < lanes; ++v) {
    top[static_cast<std::size_t>(v)] = p[v];
    others[static_cast<std::size_t>(v)] = -1;
    weight[v] = 0;
    counts[v] = 0;
  }
  for (std::int64_t k = 1; k < run.classes; ++k) {
    for (std::int64_t v = 0; v < lanes; ++v) {
      float& largest = top[static_cast<std::size_t>(v)];
      largest = p[k * lanes + v] > largest ? p[k * lanes + v] : largest;
    }
  }
  for (std::int64_t k = 0; k < run.classes; ++k) {
    const float of_class = run.class_weights[k];
    const float counting = k == run.ignore_label ? 0.0F : 1.0F;
    for (std::int64_t v = 0; v < lanes; ++v) {
      const auto lane = static_cast<std::size_t>(v);
      const bool mine = label[v] == k;
      const float below = p[k * lanes + v] - top[lane];
      chosen[lane] = mine ? below : chosen[lane];
      weight[v] = mine ? of_class * counting : weight[v];
      counts[v] = mine ? counting : counts[v];
      const float e = exponential(below);
      p[k * lanes + v] = e;
      others[lane] += static_cast<double>(e);  // the largest is 1: the rest is left, as exact as it is
    }
  }
  for (std::int64_t v = 0; v < lanes; ++v) {
    const auto lane = static_cast<std::size_t>(v);
    block.surprise[lane] = logarithm_of_one_plus(static_cast<float>(others[lane])) - chosen[lane];
    top[lane] = 1.0F / static_cast<float>(1 + others[lane]);
  }
  for (std::int64_t k = 0; k < run.classes; ++k) {
    for (std::int64_t v = 0; v < lanes; ++v) p[k * lanes + v] *= top[static_cast<std::size_t>(v)];
  }
}

/// entropy: [2], of_sample: [3, classes], both assigned: the sums over a run of voxels.
template <typename T>
HALOGRAD_MULTIVERSION void sums_of_run(const Run<T>& run, double* entropy, double* of_sample) {
  const std::int64_t lanes = lanes_for(run.classes);
  Block block;
  std::fill_n(entropy, 2, 0.0);
  std::fill_n(of_sample, 3 * run.classes, 0.0);
  for (std::int64_t first = 0; first < run.voxels; first += lanes) {
    softmax(run, first, std::min(lanes, run.voxels - first), lanes, block);
    const float* __restrict const weight = block.weight.data();
    const float* __restrict const counts = block.counts.data();
    const float* __restrict const surprise = block.surprise.data();
    const std::int32_t* __restrict const label = block.label.data();
    double surprises = 0;
    double weights = 0;
#pragma omp simd reduction(+ : surprises, weights)
    for (std::int64_t v = 0; v < lanes; ++v) {
      // What doesn't count may hold anything, infinity included.
      surprises += counts[v] > 0 ? static_cast<double>(weight[v]) * static_cast<double>(surprise[v]) : 0.0;
      weights += static_cast<double>(weight[v]);
    }
    entropy[0] += surprises;
    entropy[1] += weights;
    for (std::int64_t k = 0; k < run.classes; ++k) {
      const float* __restrict const p = block.p.data() + k * lanes;
      double both = 0;
      double predicted = 0;
      double labelled = 0;
#pragma omp simd reduction(+ : both, predicted, labelled)
      for (std::int64_t v = 0; v < lanes; ++v) {
        const float counted = counts[v] > 0 ? p[v] : 0.0F;
        both += static_cast<double>(label[v] == k ? counted : 0.0F);
        predicted += static_cast<double>(counted);
        labelled += static_cast<double>(label[v] == k ? counts[v] : 0.0F);
      }
      of_sample[k] += both;
      of_sample[run.classes + k] += predicted;
      of_sample[2 * run.classes + k] += labelled;
    }
  }
}

/// What a voxel's probabilities give, [classes] each: `labelled` + `always` where the class is its label, else
/// `always`.
struct DiceGradient {
  std::array<float, most_classes> labelled{};
  std::array<float, most_classes> always{};
};

template <typename T>
HALOGRAD_MULTIVERSION void gradient_of_run(const Run<T>& run, float entropy_scale, const DiceGradient& dice,
                                           T* dlogits) {
  const std::int64_t lanes = lanes_for(run.classes);
  Block block;
  alignas(64) std::array<T, block_elements> gradients;
  alignas(64) std::array<float, most_lanes> mean;
  for (std::int64_t first = 0; first < run.voxels; first += lanes) {
    const std::int64_t used = std::min(lanes, run.voxels - first);
    softmax(run, first, used, lanes, block);
    const float* __restrict const weight = block.weight.data();
    const float* __restrict const counts = block.counts.data();
    const std::int32_t* __restrict const label = block.label.data();
    const float* __restrict const p = block.p.data();
    T* __restrict const by_class = gradients.data();
    mean.fill(0);
    for (std::int64_t k = 0; k < run.classes; ++k) {
      const float labelled = dice.labelled[static_cast<std::size_t>(k)];
      const float always = dice.always[static_cast<std::size_t>(k)];
      for (std::int64_t v = 0; v < lanes; ++v) {
        mean[static_cast<std::size_t>(v)] += p[k * lanes + v] * ((label[v] == k ? labelled : 0.0F) + always);
      }
    }
    for (std::int64_t k = 0; k < run.classes; ++k) {
      const float labelled = dice.labelled[static_cast<std::size_t>(k)];
      const float always = dice.always[static_cast<std::size_t>(k)];
      for (std::int64_t v = 0; v < lanes; ++v) {
        const float pk = p[k * lanes + v];
        const bool mine = label[v] == k;
        const float overlap = pk * ((mine ? labelled : 0.0F) + always - mean[static_cast<std::size_t>(v)]);
        const float gradient = entropy_scale * weight[v] * (pk - (mine ? 1.0F : 0.0F)) + overlap;
        by_class[k * lanes + v] = T(counts[v] > 0 ? gradient : 0.0F);
      }
    }
    T* const to = dlogits + first * run.classes;
    for (std::int64_t v = 0; v < used; ++v) {
      for (std::int64_t k = 0; k < run.classes; ++k) to[v * run.classes + k] = by_class[k * lanes + v];
    }
  }
}

std::array<float, most_classes> weights_of(const SegmentationLossDesc& desc) {
  std::array<float, most_classes> weights;
  weights.fill(1);
  for (std::size_t k = 0; k < desc.class_weights.size(); ++k) weights[k] = static_cast<float>(desc.class_weights[k]);
  return weights;
}

template <typename T>
Run<T> run_of(const SegmentationLossDesc& desc, const float* class_weights, const T* logits, const std::uint8_t* labels,
              std::int64_t begin, std::int64_t end) {
  return {.logits = logits + begin * desc.classes,
          .labels = labels + begin,
          .voxels = end - begin,
          .classes = desc.classes,
          .class_weights = class_weights,
          .ignore_label = desc.ignore_label};
}

// Sums of so many pieces of a sample (fewer of many classes), added in order: the result doesn't depend on the number
// of threads.
constexpr std::int64_t most_pieces = 64;
constexpr std::int64_t piece_elements = 1 << 14;

template <typename T>
void sums_of(const SegmentationLossDesc& desc, const T* logits, const std::uint8_t* labels, double* sums) {
  const std::array<float, most_classes> weights = weights_of(desc);
  const std::int64_t count = 2 + 3 * desc.classes;
  const std::int64_t pieces = std::min(most_pieces, piece_elements / count);
  std::array<double, piece_elements> partial;
  std::fill_n(sums, segmentation_sum_count(desc, desc.samples), 0.0);
  for (std::int64_t n = 0; n < desc.samples; ++n) {
    parallel_for(pieces, [&](std::int64_t i) {
      const std::int64_t first = n * desc.voxels;
      const auto run = run_of(desc, weights.data(), logits, labels, first + desc.voxels * i / pieces,
                              first + desc.voxels * (i + 1) / pieces);
      double* const piece = partial.data() + i * count;
      sums_of_run(run, piece, piece + 2);
    });
    double* const of_sample = sums + 2 + n * 3 * desc.classes;
    for (std::int64_t i = 0; i < pieces; ++i) {
      const double* const piece = partial.data() + i * count;
      for (std::int64_t j = 0; j < 2; ++j) sums[j] += piece[j];
      for (std::int64_t j = 0; j < 3 * desc.classes; ++j) of_sample[j] += piece[2 + j];
    }
  }
}

template <typename T>
void gradient_of(const SegmentationLossDesc& desc, const T* logits, const std::uint8_t* labels,
                 double cross_entropy_scale, const double* dice, T* dlogits) {
  const std::array<float, most_classes> weights = weights_of(desc);
  for (std::int64_t n = 0; n < desc.samples; ++n) {
    DiceGradient gradient;
    for (std::int64_t k = 0; desc.dice != 0 && k < desc.classes; ++k) {
      const auto at = static_cast<std::size_t>(2 * n * desc.classes + k);
      gradient.labelled[static_cast<std::size_t>(k)] = static_cast<float>(dice[at]);
      gradient.always[static_cast<std::size_t>(k)] =
          static_cast<float>(dice[at + static_cast<std::size_t>(desc.classes)]);
    }
    parallel_ranges(desc.voxels, [&](std::int64_t begin, std::int64_t end, int) {
      const std::int64_t first = n * desc.voxels;
      const auto run = run_of(desc, weights.data(), logits, labels, first + begin, first + end);
      gradient_of_run(run, static_cast<float>(cross_entropy_scale), gradient, dlogits + (first + begin) * desc.classes);
    });
  }
}

}  // namespace

void segmentation_sums(const SegmentationLossDesc& desc, const void* logits, const std::uint8_t* labels, double* sums) {
  with_activation_type(desc.type, [&]<typename T>(T) { sums_of(desc, static_cast<const T*>(logits), labels, sums); });
}

void segmentation_gradient(const SegmentationLossDesc& desc, const void* logits, const std::uint8_t* labels,
                           double cross_entropy_scale, const double* dice, void* dlogits) {
  with_activation_type(desc.type, [&]<typename T>(T) {
    gradient_of(desc, static_cast<const T*>(logits), labels, cross_entropy_scale, dice, static_cast<T*>(dlogits));
  });
}

}  // namespace halograd::cpu
