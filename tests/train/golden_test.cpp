// CosmoFlow (W = 32, batch norm, no dropout) against PyTorch: the first step's loss and every gradient against its
// float64 run, ten steps of SGD and of Adam against its float32 curves. How the file was made: tests/golden/README.md.
#include "train/golden.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/models/cosmoflow.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace halograd {
namespace {

constexpr std::uint64_t seed = 1;  // of the golden file's initial weights
constexpr int trainable_arrays = 27;
constexpr int running_arrays = 14;
constexpr double curve_bound = 1e-4;
constexpr double update_bound = 1e-3;
constexpr double deviations = 4;  // an error e gives a dot with signs that don't know it a standard deviation of |e|

/// How far the first loss and gradients may be from float64's, relative to them.
double gradient_bound(Backend backend) {
  return backend == Backend::reference ? 1e-4 : 1e-3;
}

struct Golden {
  const test::NumberFile file{HALOGRAD_GOLDEN_DIRECTORY "/cosmoflow_w32.h5"};
  const test::Universes universes{file};

  [[nodiscard]] Executor executor(Backend backend, OptimizerKind kind) const {
    const Network network = cosmoflow({.width = static_cast<std::int64_t>(file.attribute("/", "width")),
                                       .dropout_keep = static_cast<float>(file.attribute("/", "dropout_keep")),
                                       .batch_norm_decay = file.attribute("/", "batch_norm_decay")});
    return {network, Communicator::self(), {.backend = backend, .optimizer = {.kind = kind}, .seed = seed}};
  }
};

const Golden& golden() {
  static const Golden file;
  return file;
}

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

double relative(double actual, double expected) {
  return std::abs(actual - expected) / expected;
}

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

TEST(GoldenInitialWeights, AreThoseThatPyTorchStartedFrom) {
  Executor executor = golden().executor(Backend::reference, OptimizerKind::sgd);
  const auto compare = [](const std::string& name, std::span<const float> weights) {
    const std::string group = "/parameters/" + name;
    const auto [norm, dot] = test::digest(weights);
    const double expected = golden().file.attribute(group, "initial_norm");
    EXPECT_NEAR(norm, expected, 1e-12 * expected) << name;
    // The same terms summed in another order.
    EXPECT_NEAR(dot, golden().file.attribute(group, "initial_dot"), 1e-11 * expected) << name;
    const auto samples = golden().file.array<float>(group + "/initial_samples");
    const auto positions = golden().file.array<std::int64_t>(group + "/positions");
    for (std::size_t i = 0; i < samples.size(); ++i) {
      ASSERT_EQ(weights[static_cast<std::size_t>(positions[i])], samples[i]) << name << " at " << positions[i];
    }
  };
  EXPECT_EQ(visit_arrays(executor, true, executor.parameters().values(), compare), trainable_arrays);
}

class GoldenFirstStep : public testing::TestWithParam<Backend> {};

TEST_P(GoldenFirstStep, HasPyTorchsLossAndGradients) {
  const double bound = gradient_bound(GetParam());
  Deviations apart;
  Executor executor = golden().executor(GetParam(), OptimizerKind::sgd);
  const auto first = test::step_batch(golden().universes, 0);
  const double loss = executor.train(first.batch, 0, 0).loss;
  apart.check("loss", relative(loss, golden().file.number("/first_step/loss")), bound);

  const auto compare = [&](const std::string& name, std::span<const float> gradient) {
    const std::string group = "/parameters/" + name;
    const double norm = golden().file.attribute(group, "gradient_norm");
    const double dot = golden().file.attribute(group, "gradient_dot");
    const auto positions = golden().file.array<std::int64_t>(group + "/positions");
    const auto samples = golden().file.array<double>(group + "/gradient_samples");
    const test::Digest actual = test::digest(gradient);
    apart.check("gradient_norm", relative(actual.norm, norm), bound, name);
    apart.check("gradient_dot", std::abs(actual.dot - dot) / norm, deviations * bound, name);
    apart.check("gradient_samples", test::relative_difference(gradient, positions, samples), bound, name);
  };
  EXPECT_EQ(visit_arrays(executor, true, executor.parameters().gradients(), compare), trainable_arrays);
}

INSTANTIATE_TEST_SUITE_P(Backends, GoldenFirstStep, testing::Values(Backend::reference, Backend::cpu),
                         [](const auto& test) { return std::string(backend_name(test.param)); });

struct Run {
  Backend backend;
  OptimizerKind kind;
};

std::string optimizer_name(const Run& run) {
  return run.kind == OptimizerKind::sgd ? "sgd" : "adam";
}

class GoldenCurve : public testing::TestWithParam<Run> {
protected:
  void train() {
    const double rate = golden().file.attribute(group, "learning_rate");
    const auto losses = golden().file.array<double>(group + "/loss_float32");
    ASSERT_EQ(golden().universes.steps(), static_cast<std::int64_t>(losses.size()));
    for (std::int64_t step = 0; step < golden().universes.steps(); ++step) {
      const auto batch = test::step_batch(golden().universes, step);
      const double loss = executor.train(batch.batch, step, rate).loss;
      apart.check("loss", relative(loss, losses[static_cast<std::size_t>(step)]), curve_bound,
                  fmt::format("step {}", step));
    }
  }

  /// What training added to each parameter, against float64.
  void compare_updates(std::span<const float> initial) {
    const float* const values = executor.parameters().values();
    std::vector<float> updates(initial.size());
    std::transform(initial.begin(), initial.end(), values, updates.begin(), [](float a, float b) { return b - a; });
    const auto compare = [&](const std::string& name, std::span<const float> update) {
      const std::string path = fmt::format("{}/updates/{}", group, name);
      const double norm = golden().file.attribute(path, "norm");
      const double dot = golden().file.attribute(path, "dot");
      // Every step rounds every weight by half a unit in the last place at most.
      const double rounding = static_cast<double>(golden().universes.steps()) * std::ldexp(1.0, -24) *
                              golden().file.attribute("/parameters/" + name, "initial_norm") / norm;
      const test::Digest actual = test::digest(update);
      apart.check("update_norm", relative(actual.norm, norm), update_bound + rounding, name);
      apart.check("update_dot", std::abs(actual.dot - dot) / norm, deviations * (update_bound + rounding), name);
    };
    EXPECT_EQ(visit_arrays(executor, true, updates.data(), compare), trainable_arrays);
  }

  void compare_running_averages() {
    const auto compare = [&](const std::string& name, std::span<const float> averages) {
      const auto expected = golden().file.array<double>(fmt::format("{}/running/{}", group, name));
      ASSERT_EQ(averages.size(), expected.size());
      apart.check("running_averages", test::relative_difference(averages, {}, expected), curve_bound, name);
    };
    EXPECT_EQ(visit_arrays(executor, false, executor.parameters().values(), compare), running_arrays);
  }

  const std::string group = "/curves/" + optimizer_name(GetParam());
  Deviations apart;
  Executor executor = golden().executor(GetParam().backend, GetParam().kind);
};

TEST_P(GoldenCurve, IsPyTorchs) {
  const float* const values = executor.parameters().values();
  const std::vector<float> initial(values, values + executor.parameters().trainable_elements());
  train();
  compare_updates(initial);
  compare_running_averages();
  const auto everything = test::all_of(golden().universes);
  const double loss = executor.evaluate(everything.batch).loss;
  apart.check("evaluation_loss", relative(loss, golden().file.number(group + "/evaluation_float32")), curve_bound);
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenCurve,
                         testing::Values(Run{Backend::reference, OptimizerKind::sgd},
                                         Run{Backend::reference, OptimizerKind::adam},
                                         Run{Backend::cpu, OptimizerKind::sgd}, Run{Backend::cpu, OptimizerKind::adam}),
                         [](const auto& test) {
                           return fmt::format("{}_{}", optimizer_name(test.param), backend_name(test.param.backend));
                         });

}  // namespace
}  // namespace halograd
