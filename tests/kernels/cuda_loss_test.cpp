#include "halograd/kernels/cuda/loss_element.hpp"
#include "halograd/kernels/loss.hpp"
#include "kernels/software_grid.hpp"

namespace halograd::test {
namespace {

template <typename T>
class CudaLossTest : public ActivationTest<T> {};
TYPED_TEST_SUITE(CudaLossTest, ActivationTypes);

/// squared_error of loss.cu.
template <typename T>
double squared_error_of(const std::vector<T>& prediction, const std::vector<float>& target, std::int64_t count) {
  const cuda::SquaredError<T> term{prediction.data(), target.data()};
  const std::int64_t pieces = cuda::squared_error_pieces(count);
  std::vector<double> partial;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    partial.push_back(block_sum([&](int thread) {
      return cuda::strided_sum(term, cuda::piece_begin(count, piece, pieces),
                               cuda::piece_begin(count, piece + 1, pieces), thread, cuda::sum_threads);
    }));
  }
  double sum = partial[0];
  if (pieces > 1) run_merge({.partial = partial.data(), .pieces = pieces}, &sum);
  return sum;
}

TYPED_TEST(CudaLossTest, SumsLikeTheReference) {
  for (const std::int64_t count : {0, 1, 4, 127, 4096, 4097, 100003}) {
    const auto prediction = rounded<TypeParam>(random_values(count, 1));
    const auto target = random_values(count, 2);
    double expected = 0;
    squared_error(Backend::reference, DType::f32, widened(prediction).data(), target.data(), count, &expected);
    EXPECT_NEAR(squared_error_of(prediction, target, count), expected, 1e-13 * expected) << count;
  }
}

TYPED_TEST(CudaLossTest, ShowsNumbersThatAreNotFinite) {
  auto prediction = rounded<TypeParam>(random_values(5000, 1));
  const auto target = random_values(5000, 2);
  prediction[4321] = TypeParam(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(squared_error_of(prediction, target, 5000)));
}

TYPED_TEST(CudaLossTest, GradientMatchesTheReferenceAlsoInPlace) {
  Dice dice(3);
  for (std::uint64_t round = 0; round < 30; ++round) {
    const std::int64_t count = dice.between(0, 2000);
    const std::int64_t shift = dice.between(0, 4);
    const std::int64_t other = dice.between(0, 1) * dice.between(0, 4);
    auto prediction = rounded<TypeParam>(random_values(count + shift, round));
    const auto target = random_values(count + other, round + 1);
    std::vector<float> expected(prediction.size());
    const std::vector<float> wide = widened(prediction);
    std::copy_n(wide.begin(), shift, expected.begin());
    squared_error_gradient(Backend::reference, DType::f32, wide.data() + shift, target.data() + other, 0.25F, count,
                           expected.data() + shift);
    TypeParam* const data = prediction.data() + shift;
    const cuda::SquaredErrorGradient<TypeParam> body(data, target.data() + other, 0.25F, count, data);
    run_walking(body, body.range.items());
    EXPECT_LT(beyond_rounding(prediction, expected), 1e-7);
  }
}

}  // namespace
}  // namespace halograd::test
