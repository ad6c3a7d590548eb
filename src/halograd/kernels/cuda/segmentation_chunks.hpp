#pragma once

#include "halograd/kernels/cuda/segmentation_element.hpp"
#include "halograd/kernels/cuda/unrolled.hpp"

namespace halograd::cuda {

// Up to eight classes: a thread has chunks of voxels, whose logits fill whole accesses of 16 bytes for any number of
// classes, with everything in registers.

constexpr int most_register_classes = 8;

/// One voxel's softmax.
template <int classes>
struct VoxelSoftmax {
  std::array<float, classes> below;  ///< z − top
  std::array<float, classes> exponentials;
  float others = 0;

  constexpr explicit VoxelSoftmax(const std::array<float, classes>& logits) {
    float top = logits[0];
    int at = 0;
    for (int k = 1; k < classes; ++k) {
      const float z = logits[static_cast<std::size_t>(k)];
      at = z > top ? k : at;
      top = z > top ? z : top;
    }
    for (int k = 0; k < classes; ++k) {
      const auto i = static_cast<std::size_t>(k);
      below[i] = logits[i] - top;
      const Exponential e = exponential(below[i], k == at);
      exponentials[i] = e.value;
      others += e.beside_top;
    }
  }
  [[nodiscard]] constexpr float scale() const { return 1.0F / (1.0F + others); }
};

/// A chunk's voxels: as many as numbers of type T fill one access.
template <typename T, int classes>
struct SegmentationChunks {
  static constexpr int voxels = static_cast<int>(access_bytes) / static_cast<int>(sizeof(T));
  using Packets = std::array<Packet<T, voxels>, classes>;
  struct Chunk {
    Packets logits;
    Packet<std::uint8_t, voxels> labels;
    int count = 0;

    [[nodiscard]] constexpr T& number(int i) {
      return logits[static_cast<std::size_t>(i / voxels)].values[static_cast<std::size_t>(i % voxels)];
    }
    [[nodiscard]] constexpr const T& number(int i) const {
      return logits[static_cast<std::size_t>(i / voxels)].values[static_cast<std::size_t>(i % voxels)];
    }
    [[nodiscard]] constexpr std::array<float, classes> voxel(int v) const {
      std::array<float, classes> z;
      for (int k = 0; k < classes; ++k) z[static_cast<std::size_t>(k)] = static_cast<float>(number(v * classes + k));
      return z;
    }
    constexpr void replace(int v, const std::array<float, classes>& z) {
      for (int k = 0; k < classes; ++k) number(v * classes + k) = T(z[static_cast<std::size_t>(k)]);
    }
    [[nodiscard]] constexpr int label(int v) const { return labels.values[static_cast<std::size_t>(v)]; }
  };

  SegmentationShape<classes> shape;
  const T* logits = nullptr;
  const std::uint8_t* labels = nullptr;
  bool whole_packets = false;  ///< every sample begins at a multiple of an access

  SegmentationChunks(const SegmentationLossDesc& desc, const T* logit_data, const std::uint8_t* label_data,
                     const T* written = nullptr)
      : shape(desc), logits(logit_data), labels(label_data) {
    const bool samples_fit = desc.samples == 1 || desc.voxels % voxels == 0;
    whole_packets = samples_fit && aligned(logit_data, access_bytes) && aligned(written, access_bytes) &&
                    aligned(label_data, voxels);
  }

  /// Chunks of a sample.
  [[nodiscard]] constexpr std::int64_t items() const { return (shape.voxels + voxels - 1) / voxels; }
  /// The first voxel of a chunk, over all samples.
  [[nodiscard]] constexpr std::int64_t voxel(std::int64_t sample, std::int64_t item) const {
    return sample * shape.voxels + item * voxels;
  }
  [[nodiscard]] constexpr bool whole(std::int64_t item) const {
    return whole_packets && (item + 1) * voxels <= shape.voxels;
  }

  [[nodiscard]] constexpr Chunk load_chunk(std::int64_t sample, std::int64_t item) const {
    const std::int64_t first = voxel(sample, item);
    const T* const from = logits + first * classes;
    Chunk chunk;
    if (whole(item)) {
      chunk.count = voxels;
      chunk.labels = load<voxels>(labels + first);
      for (int k = 0; k < classes; ++k) chunk.logits[static_cast<std::size_t>(k)] = load<voxels>(from + k * voxels);
      return chunk;
    }
    const std::int64_t left = shape.voxels - item * voxels;
    chunk.count = left < voxels ? static_cast<int>(left) : voxels;
    for (int v = 0; v < voxels; ++v) {
      chunk.labels.values[static_cast<std::size_t>(v)] = v < chunk.count ? labels[first + v] : std::uint8_t{0};
    }
    unrolled<voxels * classes>([&](auto i) { chunk.number(i) = i < chunk.count * classes ? from[i] : T(0.0F); });
    return chunk;
  }
};

/// A thread's sums over chunks.
template <typename T, int classes>
struct SegmentationChunkSums {
  static constexpr int values = 2 + 3 * classes;
  using Chunks = SegmentationChunks<T, classes>;
  struct State {
    double surprises = 0;
    std::array<double, classes> both{};
    std::array<double, classes> predicted{};
    std::array<std::uint32_t, classes> labelled{};
  };

  Chunks chunks;

  constexpr void add(State& state, std::int64_t sample, std::int64_t item) const {
    const auto chunk = chunks.load_chunk(sample, item);
    unrolled<Chunks::voxels>([&](auto v) {
      const int label = chunk.label(v);
      // What doesn't count may hold anything, infinity included.
      if (v < chunk.count && chunks.shape.counts(label)) add_voxel(state, chunk.voxel(v), label);
    });
  }

  constexpr void finish(const State& state, double (&sums)[values]) const {
    sums[0] = state.surprises;
    sums[1] = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      sums[1] += static_cast<double>(chunks.shape.weights[k]) * state.labelled[k];
      sums[2 + k] = state.both[k];
      sums[2 + classes + k] = state.predicted[k];
      sums[2 + 2 * classes + k] = state.labelled[k];
    }
  }

private:
  constexpr void add_voxel(State& state, const std::array<float, classes>& logits, int label) const {
    const VoxelSoftmax<classes> softmax(logits);
    const float scale = softmax.scale();
    float below = 0;
    float weight = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      const bool mine = label == static_cast<int>(k);
      const auto p = static_cast<double>(softmax.exponentials[k] * scale);
      below = mine ? softmax.below[k] : below;
      weight = mine ? chunks.shape.weights[k] : weight;
      state.predicted[k] += p;
      state.both[k] += mine ? p : 0.0;
      state.labelled[k] += mine ? 1U : 0U;
    }
    state.surprises += static_cast<double>(weight) * static_cast<double>(surprise(softmax.others, below));
  }
};

/// Chunks of gradients.
template <typename T, int classes>
struct SegmentationChunkGradient {
  using Chunks = SegmentationChunks<T, classes>;
  /// What is the same for all voxels of a sample.
  struct Factors {
    float entropy = 0;
    std::array<float, classes> labelled{};
    std::array<float, classes> always{};
  };

  Chunks chunks;
  const SegmentationOutcome* outcome = nullptr;
  const double* dice = nullptr;
  T* gradient = nullptr;  ///< which may be the logits

  [[nodiscard]] constexpr Factors factors(std::int64_t sample) const {
    Factors factors;
    factors.entropy = static_cast<float>(outcome->cross_entropy_scale);
    if (!chunks.shape.dice) return factors;
    const double* const of_sample = dice + 2 * classes * sample;
    for (std::size_t k = 0; k < classes; ++k) {
      factors.labelled[k] = static_cast<float>(of_sample[k]);
      factors.always[k] = static_cast<float>(of_sample[classes + k]);
    }
    return factors;
  }

  [[nodiscard]] constexpr std::array<float, classes> of_voxel(const std::array<float, classes>& logits, int label,
                                                              const Factors& factors) const {
    std::array<float, classes> result{};
    if (!chunks.shape.counts(label)) return result;
    const VoxelSoftmax<classes> softmax(logits);
    const float scale = softmax.scale();
    std::array<float, classes> by_probability;
    LogitGradient by_logit;
    for (std::size_t k = 0; k < classes; ++k) {
      const bool mine = label == static_cast<int>(k);
      by_probability[k] = (mine ? factors.labelled[k] : 0.0F) + factors.always[k];
      by_logit.mean += softmax.exponentials[k] * scale * by_probability[k];
      by_logit.entropy = mine ? factors.entropy * chunks.shape.weights[k] : by_logit.entropy;
    }
    for (std::size_t k = 0; k < classes; ++k) {
      result[k] = by_logit(softmax.exponentials[k] * scale, label == static_cast<int>(k), by_probability[k]);
    }
    return result;
  }

  constexpr void write(const Factors& factors, std::int64_t sample, std::int64_t item) const {
    auto chunk = chunks.load_chunk(sample, item);
    unrolled<Chunks::voxels>([&](auto v) { chunk.replace(v, of_voxel(chunk.voxel(v), chunk.label(v), factors)); });
    T* const to = gradient + chunks.voxel(sample, item) * classes;
    if (chunks.whole(item)) {
      for (int k = 0; k < classes; ++k) store(chunk.logits[static_cast<std::size_t>(k)], to + k * Chunks::voxels);
      return;
    }
    unrolled<Chunks::voxels * classes>([&](auto i) {
      if (i < chunk.count * classes) to[i] = chunk.number(i);
    });
  }
};

}  // namespace halograd::cuda
