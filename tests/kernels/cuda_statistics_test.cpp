#include "halograd/kernels/cuda/statistics_element.hpp"
#include "kernels/software_grid.hpp"
#include "kernels/statistics_cases.hpp"

namespace halograd::test {
namespace {

template <typename T>
std::vector<T> filled(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count), T(-9));
}

TEST(CudaStatistics, FollowTheReferenceFromMomentsToNormalisation) {
  Dice dice(1);
  for (std::uint64_t round = 0; round < 60; ++round) {
    const StatisticsDesc desc = random_statistics(dice);
    const auto moments = random_doubles(2 * desc.values(), round, 0);
    const auto g = desc.groups();
    auto mean = filled<double>(g);
    auto expected_mean = mean;
    run_items(cuda::SumsOfGroup{desc, moments.data(), mean.data()}, g);
    statistics_sums(Backend::reference, desc, moments.data(), expected_mean.data());
    EXPECT_EQ(mean, expected_mean);
    auto variance = filled<double>(g);
    auto expected_variance = variance;
    run_items(cuda::SquaresOfGroup{desc, moments.data(), mean.data(), variance.data()}, g);
    statistics_squares(Backend::reference, desc, moments.data(), expected_mean.data(), expected_variance.data());
    EXPECT_EQ(mean, expected_mean);
    EXPECT_EQ(variance, expected_variance);
    auto mean_of = filled<float>(desc.values());
    auto inverse = mean_of;
    auto expected_mean_of = mean_of;
    auto expected_inverse = mean_of;
    run_items(cuda::FinishGroup{desc, mean.data(), variance.data(), mean_of.data(), inverse.data()}, g);
    finish_statistics(Backend::reference, desc, expected_mean.data(), expected_variance.data(), expected_mean_of.data(),
                      expected_inverse.data());
    EXPECT_EQ(variance, expected_variance);
    EXPECT_EQ(mean_of, expected_mean_of);
    EXPECT_EQ(inverse, expected_inverse);
  }
}

TEST(CudaStatistics, RunningAveragesFollowTheReference) {
  Dice dice(2);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::int64_t channels = dice.between(1, 600);
    auto variance = random_doubles(channels, round, 0);
    auto expected_variance = variance;
    const StatisticsDesc desc{.channels = channels, .count = static_cast<double>(dice.between(0, 3))};
    run_items(cuda::UnbiasChannel{desc.count, variance.data()}, channels);
    unbias_variance(Backend::reference, desc, expected_variance.data());
    EXPECT_EQ(variance, expected_variance);

    const RunningAverages averages{channels, 0.99, 2};
    const auto values = random_doubles(2 * channels, round + 1, 0);
    const double least_weight = dice.one_of<double>({0, 0.5});
    auto mean = random_values(channels, round + 2);
    auto square = random_values(channels, round + 3, 0);
    auto expected_mean = mean;
    auto expected_square = square;
    run_items(cuda::MoveAverages{averages, values.data(), &least_weight, mean.data(), square.data()}, channels);
    update_running_averages(Backend::reference, averages, values.data(), &least_weight, expected_mean.data(),
                            expected_square.data());
    EXPECT_EQ(mean, expected_mean);
    EXPECT_EQ(square, expected_square);

    auto used = filled<float>(channels);
    auto inverse = used;
    auto expected_used = used;
    auto expected_inverse = used;
    run_items(cuda::UseRunning{1e-5, mean.data(), square.data(), used.data(), inverse.data()}, channels);
    use_running_statistics(Backend::reference, channels, 1e-5, mean.data(), square.data(), expected_used.data(),
                           expected_inverse.data());
    EXPECT_EQ(used, expected_used);
    EXPECT_EQ(inverse, expected_inverse);
  }
}

TEST(CudaStatistics, GradientsFollowTheReference) {
  Dice dice(3);
  for (std::uint64_t round = 0; round < 40; ++round) {
    const NormSums desc{random_statistics(dice), dice.between(0, 1) == 0};
    const StatisticsDesc& statistics = desc.statistics;
    if (statistics.count == 0) continue;
    const auto sums = random_doubles(2 * statistics.values(), round);
    const auto gamma = random_values(statistics.channels, round + 1);
    const auto inverse = random_values(statistics.values(), round + 2, 0);
    auto dgamma = filled<float>(statistics.channels);
    auto dbeta = dgamma;
    auto offset = filled<double>(statistics.values());
    auto pull = offset;
    auto expected_dgamma = dgamma;
    auto expected_dbeta = dbeta;
    auto expected_offset = offset;
    auto expected_pull = pull;
    const cuda::FinishGradient body{desc,          sums.data(),  gamma.data(),  inverse.data(),
                                    dgamma.data(), dbeta.data(), offset.data(), pull.data()};
    run_items(body, body.items());
    finish_norm_gradient(Backend::reference, desc, sums.data(), gamma.data(), inverse.data(), expected_dgamma.data(),
                         expected_dbeta.data(), expected_offset.data(), expected_pull.data());
    EXPECT_EQ(dgamma, expected_dgamma);
    EXPECT_EQ(dbeta, expected_dbeta);
    EXPECT_EQ(offset, expected_offset);
    EXPECT_EQ(pull, expected_pull);
  }
}

}  // namespace
}  // namespace halograd::test
