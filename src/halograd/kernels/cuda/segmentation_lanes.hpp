#pragma once

#include "halograd/kernels/cuda/segmentation_element.hpp"

#include <limits>

namespace halograd::cuda {

// More than eight classes: 2 to 32 lanes of a warp share a voxel. Classes go round the lanes in runs: lane l has the
// runs l, l + lanes, … What the lanes know together (the top, two sums) is combined between the steps below, over
// lanes / 2, …, 1 apart.

constexpr int most_classes = 256;
constexpr int classes_a_lane = 8;

/// How many lanes share a voxel, and how many classes they load and store at once.
template <int lanes, int run>
struct LaneLayout {};

/// Single classes take eight lanes at least, so that a voxel's are read together.
template <int run, int lanes = run == 1 ? 8 : 2, typename Body>
void with_fewest_lanes(std::int64_t classes, const Body& body) {
  if constexpr (lanes < warp_size) {
    if (classes > lanes * classes_a_lane) return with_fewest_lanes<run, 2 * lanes>(classes, body);
  }
  body(LaneLayout<lanes, run>{});
}

/// Calls `body` with the layout: runs are whole accesses where every voxel's logits (and what is written) are.
template <typename T, typename Body>
void with_lane_layout(std::int64_t classes, const T* logits, const T* written, const Body& body) {
  constexpr int run = static_cast<int>(access_bytes) / static_cast<int>(sizeof(T));
  if (classes % run == 0 && aligned(logits, access_bytes) && aligned(written, access_bytes)) {
    with_fewest_lanes<run>(classes, body);
  } else {
    with_fewest_lanes<1>(classes, body);
  }
}

/// The largest logit, of equal ones that of the lowest class. One that is not a number is never at the top: what it
/// adds to the sums says what it is.
struct Top {
  float logit = -std::numeric_limits<float>::infinity();
  int at = most_classes;
};
constexpr Top upper(const Top& a, const Top& b) {
  if (a.logit != b.logit) return a.logit > b.logit ? a : b;
  return a.at < b.at ? a : b;
}

/// What a lane has of a voxel.
struct LaneVoxel {
  std::array<float, classes_a_lane> z{};  ///< logits, then eᶻ⁻ᵗᵒᵖ, then p
  float label_below = 0;                  ///< z − top of the label, in the lane that has it
  int label = most_classes;
  bool counts = false;
};

template <typename T, int lanes, int run>
struct SegmentationLanes {
  SegmentationShape<most_classes> shape;
  const T* logits = nullptr;
  const std::uint8_t* labels = nullptr;

  SegmentationLanes(const SegmentationLossDesc& desc, const T* logit_data, const std::uint8_t* label_data)
      : shape(desc), logits(logit_data), labels(label_data) {}

  static constexpr int class_of(int lane, int j) { return (lane + j / run * lanes) * run + j % run; }

  /// A voxel (over all samples) that isn't `there` counts as little as an ignored one.
  [[nodiscard]] constexpr LaneVoxel load_voxel(std::int64_t voxel, bool there, int lane) const {
    LaneVoxel mine;
    if (!there) return mine;
    mine.label = labels[voxel];
    mine.counts = shape.counts(mine.label);
    for (int j = 0; j < classes_a_lane; j += run) {
      const int k = class_of(lane, j);
      if (k >= shape.classes) continue;  // nor is any other of the run
      const std::array<T, run> loaded = load_run<run>(logits + voxel * shape.classes + k);
      for (int i = 0; i < run; ++i) {
        mine.z[static_cast<std::size_t>(j + i)] = static_cast<float>(loaded[static_cast<std::size_t>(i)]);
      }
    }
    return mine;
  }

  [[nodiscard]] constexpr Top top(const LaneVoxel& mine, int lane) const {
    Top top;
    for (int j = 0; j < classes_a_lane; ++j) {
      const int k = class_of(lane, j);
      const float z = mine.z[static_cast<std::size_t>(j)];
      if (k < shape.classes && z > top.logit) top = {z, k};
    }
    return top;
  }

  /// This lane's part of Σ eᶻ⁻ᵗᵒᵖ without the top's 1.
  [[nodiscard]] constexpr float exponentials(LaneVoxel& mine, const Top& top, int lane) const {
    float others = 0;
    for (int j = 0; j < classes_a_lane; ++j) {
      const int k = class_of(lane, j);
      if (k >= shape.classes) continue;
      float& z = mine.z[static_cast<std::size_t>(j)];
      const float below = z - top.logit;
      if (k == mine.label) mine.label_below = below;
      const Exponential e = exponential(below, k == top.at);
      z = e.value;
      others += e.beside_top;
    }
    return others;
  }

  constexpr void probabilities(LaneVoxel& mine, float others) const {
    const float scale = 1.0F / (1.0F + others);
    for (float& z : mine.z) z *= scale;
  }
};

/// A lane's sums over voxels.
template <typename T, int lanes, int run>
struct SegmentationLaneSums {
  struct State {
    double surprises = 0;
    std::array<double, classes_a_lane> both{};
    std::array<double, classes_a_lane> predicted{};
    std::array<std::uint32_t, classes_a_lane> labelled{};
  };
  SegmentationLanes<T, lanes, run> voxels;

  constexpr void add(State& state, const LaneVoxel& mine, float others, int lane) const {
    if (!mine.counts) return;
    for (std::size_t j = 0; j < classes_a_lane; ++j) {
      const int k = voxels.class_of(lane, static_cast<int>(j));
      if (k >= voxels.shape.classes) continue;
      const auto p = static_cast<double>(mine.z[j]);
      state.predicted[j] += p;
      if (k != mine.label) continue;
      state.both[j] += p;
      state.labelled[j] += 1;
      const float weight = voxels.shape.weights[static_cast<std::size_t>(k)];
      state.surprises += static_cast<double>(weight) * static_cast<double>(surprise(others, mine.label_below));
    }
  }
  /// Σ w of what the lane has seen.
  [[nodiscard]] constexpr double weights(const State& state, int lane) const {
    double sum = 0;
    for (std::size_t j = 0; j < classes_a_lane; ++j) {
      const int k = voxels.class_of(lane, static_cast<int>(j));
      if (k < voxels.shape.classes) {
        sum += static_cast<double>(voxels.shape.weights[static_cast<std::size_t>(k)]) * state.labelled[j];
      }
    }
    return sum;
  }
};

/// A lane's part of a voxel's gradient.
template <typename T, int lanes, int run>
struct SegmentationLaneGradient {
  SegmentationLanes<T, lanes, run> voxels;
  const SegmentationOutcome* outcome = nullptr;
  const double* dice = nullptr;
  T* gradient = nullptr;  ///< which may be the logits

  [[nodiscard]] constexpr float by_probability(std::int64_t sample, int label, int k) const {
    if (!voxels.shape.dice) return 0;
    const double* const of_sample = dice + 2 * voxels.shape.classes * sample;
    const float always = static_cast<float>(of_sample[voxels.shape.classes + k]);
    return (k == label ? static_cast<float>(of_sample[k]) : 0.0F) + always;
  }
  /// This lane's part of Σ p times that.
  [[nodiscard]] constexpr float mean(const LaneVoxel& mine, std::int64_t sample, int lane) const {
    float sum = 0;
    for (std::size_t j = 0; j < classes_a_lane; ++j) {
      const int k = voxels.class_of(lane, static_cast<int>(j));
      if (k < voxels.shape.classes) sum += mine.z[j] * by_probability(sample, mine.label, k);
    }
    return sum;
  }
  constexpr void write(const LaneVoxel& mine, float mean, std::int64_t sample, std::int64_t voxel, int lane) const {
    const float weight = mine.counts ? voxels.shape.weights[static_cast<std::size_t>(mine.label)] : 0.0F;
    const LogitGradient by_logit{static_cast<float>(outcome->cross_entropy_scale) * weight, mean};
    for (int j = 0; j < classes_a_lane; j += run) {
      const int first = voxels.class_of(lane, j);
      if (first >= voxels.shape.classes) continue;
      std::array<T, run> values;
      for (int i = 0; i < run; ++i) {
        const int k = first + i;
        const float p = mine.z[static_cast<std::size_t>(j + i)];
        const float value = by_logit(p, k == mine.label, by_probability(sample, mine.label, k));
        values[static_cast<std::size_t>(i)] = T(mine.counts ? value : 0.0F);
      }
      store_run(values, gradient + voxel * voxels.shape.classes + first);
    }
  }
};

}  // namespace halograd::cuda
