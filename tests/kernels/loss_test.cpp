#include "halograd/kernels/loss.hpp"

#include "kernels/bf16_support.hpp"
#include "kernels/support.hpp"

namespace halograd::test {
namespace {

class LossTest : public BackendTest {};

double error_of(Backend backend, const std::vector<float>& prediction, const std::vector<float>& target,
                std::int64_t count) {
  double sum = 1e30;
  squared_error(backend, DType::f32, prediction.data(), target.data(), count, &sum);
  return sum;
}

TEST_P(LossTest, IsTheSumOfSquares) {
  const std::vector<float> prediction{1, 2, 3, -4};
  const std::vector<float> target{1, 0, 4, 4};
  EXPECT_EQ(error_of(GetParam(), prediction, target, 4), 69.0);
  EXPECT_EQ(error_of(GetParam(), prediction, target, 0), 0.0);
}

TEST_P(LossTest, SumsInDouble) {
  // In float a sum of 2²⁴ ones stops growing at 2²⁴; here 2²⁰ terms of 0.1² must come out to twelve digits.
  const std::int64_t count = (1 << 20) + 3;
  const std::vector<float> prediction(static_cast<std::size_t>(count), 0.1F);
  const std::vector<float> target(static_cast<std::size_t>(count), 0.0F);
  const double term = static_cast<double>(0.1F) * static_cast<double>(0.1F);
  const double expected = term * static_cast<double>(count);
  EXPECT_NEAR(error_of(GetParam(), prediction, target, count) / expected, 1.0, 1e-11);
}

TEST_P(LossTest, GradientIsScaledDifference) {
  const auto prediction = random_values(1003, 1);
  const auto target = random_values(1003, 2);
  std::vector<float> gradient(prediction.size(), 9);
  squared_error_gradient(GetParam(), DType::f32, prediction.data(), target.data(), 0.25F, 1003, gradient.data());
  std::vector<double> expected(prediction.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = 0.25 * (static_cast<double>(prediction[i]) - static_cast<double>(target[i]));
  }
  EXPECT_LT(relative_l2(gradient, expected), 1e-6);
}

/// The sum is not rounded, the gradient once, in place too.
TEST(LossBf16, IsTheReferenceOfTheSameNumbers) {
  for (const std::int64_t count : {1, 63, 1003, 40000}) {
    const auto prediction = bf16_values(count, 1);
    const auto target = random_values(count, 2);
    std::vector<Bf16> narrow = to_bf16(prediction);
    double sum = 1e30;
    squared_error(Backend::cpu, DType::bf16, narrow.data(), target.data(), count, &sum);
    EXPECT_NEAR(sum / error_of(Backend::reference, prediction, target, count), 1, 1e-12);
    std::vector<float> expected(prediction.size());
    squared_error_gradient(Backend::reference, DType::f32, prediction.data(), target.data(), 0.3F, count,
                           expected.data());
    std::vector<Bf16> apart(narrow.size());
    squared_error_gradient(Backend::cpu, DType::bf16, narrow.data(), target.data(), 0.3F, count, apart.data());
    expect_rounded(to_floats(apart), expected, 1e-7);
    squared_error_gradient(Backend::cpu, DType::bf16, narrow.data(), target.data(), 0.3F, count, narrow.data());
    EXPECT_EQ(to_floats(narrow), to_floats(apart));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LossTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
