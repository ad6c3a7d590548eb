#pragma once

// What the golden tests compare: an executor's weights, gradients and running averages with what a golden file says.
#include "halograd/exec/executor.hpp"
#include "train/golden.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace halograd::test {

/// Expects deviations to stay within bounds; the largest of each kind go into the test's report (--gtest_output=xml).
class Deviations {
public:
  Deviations() = default;
  Deviations(const Deviations&) = delete;
  Deviations& operator=(const Deviations&) = delete;
  ~Deviations() {
    for (const auto& [kind, apart] : largest_) testing::Test::RecordProperty(kind, fmt::format("{:.1e}", apart));
  }

  void check(const std::string& kind, double apart, double bound, const std::string& where = "") {
    EXPECT_LE(apart, bound) << kind << " " << where;
    largest_[kind] = std::max(largest_[kind], apart);
  }

private:
  std::map<std::string, double> largest_;
};

inline double relative(double actual, double expected) {
  return std::abs(actual - expected) / expected;
}

/// How far an array ("conv1/weight") may be from the golden one, relative to it.
using Bound = std::function<double(const std::string& name)>;

/// Calls visit("conv1/weight", its part of the flat array `values`) for each array that is trained, or each that isn't,
/// and returns how many there are.
template <typename Visit>
int visit_arrays(Executor& executor, bool trainable, const float* values, const Visit& visit) {
  int count = 0;
  for (const ParameterPlan& entry : executor.parameters().parameters()) {
    if (entry.spec.trainable != trainable) continue;
    visit(entry.spec.layer + "/" + entry.spec.name,
          std::span(values + entry.offset, static_cast<std::size_t>(entry.spec.elements())));
    ++count;
  }
  return count;
}

// Each returns how many arrays it compared.

inline int expect_initial_weights(Executor& executor, const NumberFile& golden) {
  return visit_arrays(
      executor, true, executor.parameters().values(), [&](const std::string& name, std::span<const float> weights) {
        const std::string group = "/parameters/" + name;
        const auto [norm, dot] = digest(weights);
        const double expected = golden.attribute(group, "initial_norm");
        EXPECT_NEAR(norm, expected, 1e-12 * expected) << name;
        // The same terms summed in another order.
        EXPECT_NEAR(dot, golden.attribute(group, "initial_dot"), 1e-11 * expected) << name;
        const auto samples = golden.array<float>(group + "/initial_samples");
        const auto positions = golden.array<std::int64_t>(group + "/positions");
        for (std::size_t i = 0; i < samples.size(); ++i) {
          ASSERT_EQ(weights[static_cast<std::size_t>(positions[i])], samples[i]) << name << " at " << positions[i];
        }
      });
}

/// An error e gives a dot with signs that don't know it a standard deviation of |e|.
constexpr double dot_deviations = 4;

/// The last step's, with those of the golden file's group `gradients`.
inline int check_gradients(Executor& executor, const NumberFile& golden, const std::string& gradients,
                           const Bound& bound_of, Deviations& apart) {
  return visit_arrays(executor, true, executor.parameters().gradients(),
                      [&](const std::string& name, std::span<const float> gradient) {
                        const std::string group = gradients + "/" + name;
                        const double bound = bound_of(name);
                        const double norm = golden.attribute(group, "gradient_norm");
                        const double dot = golden.attribute(group, "gradient_dot");
                        const auto positions = golden.array<std::int64_t>("/parameters/" + name + "/positions");
                        const auto samples = golden.array<double>(group + "/gradient_samples");
                        const Digest actual = digest(gradient);
                        apart.check("gradient_norm", relative(actual.norm, norm), bound, name);
                        apart.check("gradient_dot", std::abs(actual.dot - dot) / norm, dot_deviations * bound, name);
                        apart.check("gradient_samples", relative_difference(gradient, positions, samples), bound, name);
                      });
}

/// What training for `steps` steps added to each parameter, with what it added in float64. curve: "/curves/sgd".
inline int check_updates(Executor& executor, std::span<const float> initial, const NumberFile& golden,
                         const std::string& curve, std::int64_t steps, const Bound& bound_of, Deviations& apart) {
  std::vector<float> updates(initial.size());
  std::transform(initial.begin(), initial.end(), executor.parameters().values(), updates.begin(),
                 [](float before, float after) { return after - before; });
  return visit_arrays(executor, true, updates.data(), [&](const std::string& name, std::span<const float> update) {
    const std::string path = fmt::format("{}/updates/{}", curve, name);
    const double norm = golden.attribute(path, "norm");
    const double dot = golden.attribute(path, "dot");
    // Every step rounds every weight by half a unit in the last place at most.
    const double rounding = static_cast<double>(steps) * std::ldexp(1.0, -24) *
                            golden.attribute("/parameters/" + name, "initial_norm") / norm;
    const double bound = bound_of(name) + rounding;
    const Digest actual = digest(update);
    apart.check("update_norm", relative(actual.norm, norm), bound, name);
    apart.check("update_dot", std::abs(actual.dot - dot) / norm, dot_deviations * bound, name);
  });
}

/// With those after training in float64.
inline int check_running_averages(Executor& executor, const NumberFile& golden, const std::string& curve, double bound,
                                  Deviations& apart) {
  return visit_arrays(executor, false, executor.parameters().values(),
                      [&](const std::string& name, std::span<const float> averages) {
                        const auto expected = golden.array<double>(fmt::format("{}/running/{}", curve, name));
                        ASSERT_EQ(averages.size(), expected.size());
                        apart.check("running_averages", relative_difference(averages, {}, expected), bound, name);
                      });
}

}  // namespace halograd::test
