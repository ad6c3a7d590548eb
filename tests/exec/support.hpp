#pragma once

#include "halograd/exec/executor.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace halograd::test {

/// Centred random numbers keyed by the global index, so that every rank makes its part of the same samples.
inline float random_value(std::uint64_t seed, std::int64_t sample, std::int64_t index) {
  return 2.0F * RandomStream{seed, 7, static_cast<std::uint32_t>(sample)}.uniform(static_cast<std::uint64_t>(index)) -
         1;
}

/// The part `own` of sample `sample` of a tensor [D,H,W,C] of `shape`.
inline std::vector<float> random_part(std::uint64_t seed, std::int64_t sample, const GlobalShape& shape,
                                      const Box& own) {
  std::vector<float> part;
  for (std::int64_t d = own.lo.d; d < own.hi.d; ++d) {
    for (std::int64_t h = own.lo.h; h < own.hi.h; ++h) {
      for (std::int64_t w = own.lo.w; w < own.hi.w; ++w) {
        for (std::int64_t c = 0; c < shape.channels; ++c) {
          const std::int64_t voxel = (d * shape.extent.h + h) * shape.extent.w + w;
          part.push_back(random_value(seed, sample, voxel * shape.channels + c));
        }
      }
    }
  }
  return part;
}

/// A rank's share of a random mini-batch, with the memory its views point to.
struct RandomBatch {
  RandomBatch(const Plan& plan, std::uint64_t seed) {
    batch.size = plan.batch;
    for (std::int64_t n = 0; n < plan.samples.count; ++n) {
      const std::int64_t sample = plan.samples.first + n;
      inputs.push_back(random_part(seed, sample, plan.input.shape, plan.input.own));
      const std::vector<float> target = random_part(seed + 1, sample, plan.output.shape, plan.output.own);
      targets.insert(targets.end(), target.begin(), target.end());
    }
    for (const std::vector<float>& input : inputs) batch.samples.push_back({input.data(), DType::f32, false, "random"});
    batch.targets = targets.data();
  }
  RandomBatch(const RandomBatch&) = delete;
  RandomBatch& operator=(const RandomBatch&) = delete;

  std::vector<std::vector<float>> inputs;
  std::vector<float> targets;
  MiniBatch batch;
};

inline double relative_l2(const float* actual, const float* expected, std::int64_t count) {
  double difference = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double apart = static_cast<double>(actual[i]) - expected[i];
    difference += apart * apart;
    norm += static_cast<double>(expected[i]) * expected[i];
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

}  // namespace halograd::test
