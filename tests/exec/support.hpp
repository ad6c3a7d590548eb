#pragma once

#include "halograd/exec/choose_device.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/exec/generated_batch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace halograd::test {

/// Centred random numbers keyed by the global index, so that every rank makes its part of the same samples.
inline float random_value(std::uint64_t seed, std::int64_t sample, std::int64_t index) {
  return 2.0F * RandomStream{seed, 7, static_cast<std::uint32_t>(sample)}.uniform(static_cast<std::uint64_t>(index)) -
         1;
}

/// A random mini-batch: inputs from `seed`, targets (or labels below the number of classes) from the one after it.
class RandomBatch : public GeneratedBatch {
public:
  RandomBatch(const Plan& plan, std::uint64_t seed)
      : GeneratedBatch(plan, values(plan.input.shape, seed), targets(plan, seed + 1)) {}

private:
  static VoxelFunction values(const GlobalShape& shape, std::uint64_t seed) {
    return [=](std::int64_t sample, const Index& at, std::int64_t channel) {
      const std::int64_t voxel = (at.d * shape.extent.h + at.h) * shape.extent.w + at.w;
      return random_value(seed, sample, voxel * shape.channels + channel);
    };
  }
  static VoxelFunction targets(const Plan& plan, std::uint64_t seed) {
    if (plan.input.labels < 0) return values(plan.output.shape, seed);
    return [value = values({1, plan.output.shape.extent}, seed), classes = plan.output.shape.channels](
               std::int64_t sample, const Index& at, std::int64_t channel) {
      return std::floor((value(sample, at, channel) + 1) / 2 * static_cast<float>(classes));
    };
  }
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

/// `parts` for each sample, and as many groups as the ranks allow.
inline ProcessGrid grid_of(const Extent& parts, int ranks) {
  return {ranks / parts.volume(), parts.d, parts.h, parts.w};
}

/// Where the tests of `cpu` kernels run: on the processor, or what HALOGRAD_TEST_DEVICE names (see choose_device; the
/// ranks of `world` share the GPUs there are).
inline Device device_under_test(Backend backend, const Communicator& world) {
  const char* const named = std::getenv("HALOGRAD_TEST_DEVICE");
  return backend == Backend::cpu && named != nullptr ? choose_device(named, world) : Device(backend);
}

/// Every trainable array's gradient, in the flat order of the network's plans, to within `bound` (relative L2).
inline void compare_gradients(const Network& network, const std::vector<float>& actual,
                              const std::vector<float>& expected, double bound, const std::string& where) {
  const Plan plan = compile(network, {});
  for (const ParameterPlan& entry : plan.parameters) {
    if (!entry.spec.trainable) continue;
    const double apart =
        relative_l2(actual.data() + entry.offset, expected.data() + entry.offset, entry.spec.elements());
    EXPECT_LE(apart, bound) << entry.spec.layer << "." << entry.spec.name << " " << where;
  }
}

inline void compare_losses(const std::vector<double>& actual, const std::vector<double>& expected, double bound,
                           const std::string& where) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], bound * expected[i]) << "step " << i << " " << where;
  }
}

}  // namespace halograd::test
