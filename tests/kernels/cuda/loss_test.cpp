#include "halograd/kernels/loss.hpp"

#include "kernels/cuda/on_device.hpp"

#include <limits>

namespace halograd::test {
namespace {

class CudaLosses : public OnDevice {};

TEST_P(CudaLosses, SumLikeTheReference) {
  for (const std::int64_t count : {0, 1, 4, 127, 4096, 4097, 100003, 1000001}) {
    const auto prediction = random_activations(count, 1);
    const auto target = random_values(count, 2);
    double expected = 0;
    squared_error(Backend::reference, DType::f32, prediction.data(), target.data(), count, &expected);
    for (const std::int64_t shift : {0, 1}) {
      const DeviceArray on_prediction = activations(prediction, shift);
      const DeviceArray on_target = array(target, shift);
      const DeviceArray sum = array(std::vector<double>{1e30});
      run(
          [&] {
            squared_error(queue, type(), on_prediction.data(), on_target.data<float>(), count, sum.data<double>());
          },
          {&sum});
      // Sums of doubles in another order differ in their last bits.
      EXPECT_NEAR(sum.values<double>()[0], expected, 1e-12 * expected) << count;
    }
  }
}

TEST_P(CudaLosses, ShowNumbersThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto prediction = random_activations(5000, 1);
    prediction[4321] = bad;
    const DeviceArray on_prediction = activations(prediction);
    const DeviceArray on_target = array(random_values(5000, 2));
    const DeviceArray sum = array(std::vector<double>{0});
    squared_error(queue, type(), on_prediction.data(), on_target.data<float>(), 5000, sum.data<double>());
    EXPECT_FALSE(std::isfinite(sum.values<double>()[0])) << bad;
  }
}

TEST_P(CudaLosses, GradientMatchesTheReferenceAlsoInPlace) {
  Dice dice(3);
  for (std::uint64_t round = 0; round < 30; ++round) {
    const std::int64_t count = round == 0 ? 300007 : dice.between(0, 2000);
    const std::int64_t shift = dice.between(0, 4);
    const std::int64_t other = dice.between(0, 1) * dice.between(0, 4);
    const auto prediction = random_activations(count, round);
    const auto target = random_values(count, round + 1);
    std::vector<float> expected(prediction.size());
    squared_error_gradient(Backend::reference, DType::f32, prediction.data(), target.data(), 0.3F, count,
                           expected.data());
    const DeviceArray on_prediction = activations(prediction, shift);
    const DeviceArray on_target = array(target, other);
    const DeviceArray gradient = activations(std::vector<float>(prediction.size(), 9), shift);
    const auto into = [&](const DeviceArray& to) {
      run(
          [&] {
            squared_error_gradient(queue, type(), on_prediction.data(), on_target.data<float>(), 0.3F, count,
                                   to.data());
          },
          {&to});
    };
    into(gradient);
    EXPECT_LT(beyond_rounding(gradient, expected), 1e-7);
    into(on_prediction);
    EXPECT_EQ(floats(on_prediction), floats(gradient));
  }
}

INSTANTIATE_TEST_SUITE_P(Places, CudaLosses, all_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
