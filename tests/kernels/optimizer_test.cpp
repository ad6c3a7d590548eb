#include "halograd/kernels/optimizer.hpp"

#include "kernels/support.hpp"

namespace halograd::test {
namespace {

class OptimizerTest : public BackendTest {};

TEST_P(OptimizerTest, AdamFollowsAlgorithmOne) {
  const std::int64_t count = 1037;
  const auto start = random_values(count, 1);
  std::vector<float> w = start;
  std::vector<float> m(w.size()), v(w.size());
  std::vector<double> expected_w(w.begin(), w.end()), expected_m(w.size()), expected_v(w.size());
  AdamStep adam{.learning_rate = 0.01};
  for (adam.step = 1; adam.step <= 5; ++adam.step) {
    const auto g = random_values(count, static_cast<std::uint64_t>(10 + adam.step));
    adam_update(GetParam(), &adam, g.data(), w.data(), m.data(), v.data(), count);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double gradient = static_cast<double>(g[i]);
      expected_m[i] = 0.9 * expected_m[i] + 0.1 * gradient;
      expected_v[i] = 0.999 * expected_v[i] + 0.001 * gradient * gradient;
      const double mean = expected_m[i] / (1 - std::pow(0.9, adam.step));
      const double square = expected_v[i] / (1 - std::pow(0.999, adam.step));
      expected_w[i] -= 0.01 * mean / (std::sqrt(square) + 1e-8);
    }
  }
  EXPECT_LT(relative_l2(m, expected_m), 1e-6);
  EXPECT_LT(relative_l2(v, expected_v), 1e-6);
  // What counts is the distance moved, not the weight it is added to.
  std::vector<double> moved(w.size()), expected_moved(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    moved[i] = static_cast<double>(w[i]) - static_cast<double>(start[i]);
    expected_moved[i] = expected_w[i] - static_cast<double>(start[i]);
  }
  EXPECT_LT(relative_l2(moved, expected_moved), 1e-5);
}

TEST_P(OptimizerTest, AdamsFirstStepIsTheLearningRate) {
  // From zero moments the first step is rate · g / (|g| + ε), whatever the size of g.
  std::vector<float> w(3), m(3), v(3);
  const std::vector<float> g{2.0F, -1e-3F, 0.0F};
  const AdamStep adam{.learning_rate = 0.5};
  adam_update(GetParam(), &adam, g.data(), w.data(), m.data(), v.data(), 3);
  EXPECT_NEAR(w[0], -0.5, 1e-5);
  EXPECT_NEAR(w[1], 0.5, 1e-4);
  EXPECT_EQ(w[2], 0.0F);
}

TEST_P(OptimizerTest, SgdCarriesMomentum) {
  std::vector<float> w{1.0F};
  std::vector<float> velocity{0.0F};
  const SgdStep sgd{.learning_rate = 0.5, .momentum = 0.75};
  const float g = 1.0F;
  sgd_update(GetParam(), &sgd, &g, w.data(), velocity.data(), 1);
  EXPECT_EQ(w[0], 0.5F);
  EXPECT_EQ(velocity[0], 1.0F);
  sgd_update(GetParam(), &sgd, &g, w.data(), velocity.data(), 1);
  EXPECT_EQ(velocity[0], 1.75F);
  EXPECT_EQ(w[0], -0.375F);
}

INSTANTIATE_TEST_SUITE_P(Backends, OptimizerTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
