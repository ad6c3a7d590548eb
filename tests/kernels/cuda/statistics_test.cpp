#include "halograd/kernels/statistics.hpp"

#include "kernels/cuda/on_device.hpp"
#include "kernels/statistics_cases.hpp"

namespace halograd::test {
namespace {

// A GPU rounds a product and a sum at once where the host does it twice: the last bits may differ.
constexpr double double_bound = 1e-12;
constexpr double float_bound = 3e-7;

class CudaStatistics : public OnDevice {
protected:
  template <typename T>
  [[nodiscard]] DeviceArray filled(std::int64_t count) const {
    return array(std::vector<T>(static_cast<std::size_t>(count), T(-9)));
  }
};

template <typename T>
std::vector<T> numbers(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count), T(-9));
}

TEST_P(CudaStatistics, FollowTheReferenceFromMomentsToNormalisation) {
  Dice dice(1);
  for (std::uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const StatisticsDesc desc = random_statistics(dice);
    const auto moments = random_doubles(2 * desc.values(), round, 0);
    auto mean = numbers<double>(desc.groups());
    auto sums = mean;
    auto variance = mean;
    auto mean_of = numbers<float>(desc.values());
    auto inverse = mean_of;
    statistics_sums(Backend::reference, desc, moments.data(), sums.data());
    mean = sums;
    statistics_squares(Backend::reference, desc, moments.data(), mean.data(), variance.data());
    finish_statistics(Backend::reference, desc, mean.data(), variance.data(), mean_of.data(), inverse.data());

    const DeviceArray on_moments = array(moments);
    const DeviceArray on_sums = filled<double>(desc.groups());
    const DeviceArray on_variance = filled<double>(desc.groups());
    const DeviceArray on_mean_of = filled<float>(desc.values());
    const DeviceArray on_inverse = filled<float>(desc.values());
    statistics_sums(queue, desc, on_moments.data<double>(), on_sums.data<double>());
    EXPECT_LT(relative_l2(on_sums.values<double>(), sums), double_bound);
    run(
        [&] {
          statistics_sums(queue, desc, on_moments.data<double>(), on_sums.data<double>());
          statistics_squares(queue, desc, on_moments.data<double>(), on_sums.data<double>(),
                             on_variance.data<double>());
          finish_statistics(queue, desc, on_sums.data<double>(), on_variance.data<double>(), on_mean_of.data<float>(),
                            on_inverse.data<float>());
        },
        {&on_sums, &on_variance, &on_mean_of, &on_inverse});
    EXPECT_LT(relative_l2(on_sums.values<double>(), mean), double_bound);
    EXPECT_LT(relative_l2(on_variance.values<double>(), variance), double_bound);
    EXPECT_LT(relative_l2(on_mean_of.values<float>(), mean_of), float_bound);
    EXPECT_LT(relative_l2(on_inverse.values<float>(), inverse), float_bound);
  }
}

TEST_P(CudaStatistics, RunningAveragesFollowTheReference) {
  Dice dice(2);
  for (std::uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::int64_t channels = dice.between(1, 600);
    const StatisticsDesc desc{.channels = channels, .count = static_cast<double>(dice.between(0, 3))};
    auto variance = random_doubles(channels, round, 0);
    const DeviceArray on_variance = array(variance);
    unbias_variance(Backend::reference, desc, variance.data());
    run([&] { unbias_variance(queue, desc, on_variance.data<double>()); }, {&on_variance});
    EXPECT_LT(relative_l2(on_variance.values<double>(), variance), double_bound);

    const RunningAverages averages{channels, 0.99, 2};
    const auto values = random_doubles(2 * channels, round + 1, 0);
    const double least_weight = dice.one_of<double>({0, 0.5});
    auto mean = random_values(channels, round + 2);
    auto square = random_values(channels, round + 3, 0);
    auto used = numbers<float>(channels);
    auto inverse = used;
    const DeviceArray on_values = array(values);
    const DeviceArray on_weight = array(std::vector<double>{least_weight});
    const DeviceArray on_mean = array(mean);
    const DeviceArray on_square = array(square);
    const DeviceArray on_used = filled<float>(channels);
    const DeviceArray on_inverse = filled<float>(channels);
    update_running_averages(Backend::reference, averages, values.data(), &least_weight, mean.data(), square.data());
    use_running_statistics(Backend::reference, channels, 1e-5, mean.data(), square.data(), used.data(), inverse.data());
    run(
        [&] {
          update_running_averages(queue, averages, on_values.data<double>(), on_weight.data<double>(),
                                  on_mean.data<float>(), on_square.data<float>());
          use_running_statistics(queue, channels, 1e-5, on_mean.data<float>(), on_square.data<float>(),
                                 on_used.data<float>(), on_inverse.data<float>());
        },
        {&on_mean, &on_square, &on_used, &on_inverse});
    EXPECT_LT(relative_l2(on_mean.values<float>(), mean), float_bound);
    EXPECT_LT(relative_l2(on_square.values<float>(), square), float_bound);
    EXPECT_LT(relative_l2(on_used.values<float>(), used), float_bound);
    EXPECT_LT(relative_l2(on_inverse.values<float>(), inverse), float_bound);
  }
}

TEST_P(CudaStatistics, GradientsFollowTheReference) {
  Dice dice(3);
  for (std::uint64_t round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const NormSums desc{random_statistics(dice), dice.between(0, 1) == 0};
    const StatisticsDesc& statistics = desc.statistics;
    if (statistics.count == 0) continue;
    const auto sums = random_doubles(2 * statistics.values(), round);
    const auto gamma = random_values(statistics.channels, round + 1);
    const auto inverse = random_values(statistics.values(), round + 2, 0);
    auto dgamma = numbers<float>(statistics.channels);
    auto dbeta = dgamma;
    auto offset = numbers<double>(statistics.values());
    auto pull = offset;
    finish_norm_gradient(Backend::reference, desc, sums.data(), gamma.data(), inverse.data(), dgamma.data(),
                         dbeta.data(), offset.data(), pull.data());
    const DeviceArray on_sums = array(sums);
    const DeviceArray on_gamma = array(gamma);
    const DeviceArray on_inverse = array(inverse);
    const DeviceArray on_dgamma = filled<float>(statistics.channels);
    const DeviceArray on_dbeta = filled<float>(statistics.channels);
    const DeviceArray on_offset = filled<double>(statistics.values());
    const DeviceArray on_pull = filled<double>(statistics.values());
    run(
        [&] {
          finish_norm_gradient(queue, desc, on_sums.data<double>(), on_gamma.data<float>(), on_inverse.data<float>(),
                               on_dgamma.data<float>(), on_dbeta.data<float>(), on_offset.data<double>(),
                               on_pull.data<double>());
        },
        {&on_dgamma, &on_dbeta, &on_offset, &on_pull});
    EXPECT_LT(relative_l2(on_dgamma.values<float>(), dgamma), float_bound);
    EXPECT_LT(relative_l2(on_dbeta.values<float>(), dbeta), float_bound);
    EXPECT_LT(relative_l2(on_offset.values<double>(), offset), double_bound);
    EXPECT_LT(relative_l2(on_pull.values<double>(), pull), double_bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, CudaStatistics, float_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
