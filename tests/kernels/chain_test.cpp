#include "halograd/kernels/chain.hpp"

#include "kernels/chain_support.hpp"

#include <tuple>

namespace halograd::test {
namespace {

const DropoutKey dropout_key{random_stream(11, RandomPurpose::dropout, 3, 5), 7};

std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// What one rank that holds everything computes: the outputs, the gradient of y and the sums behind it.
struct WholeRun {
  std::vector<float> out;
  std::vector<float> dy;
  std::vector<std::uint8_t> argmax;
  std::vector<double> sums;
};

WholeRun run_whole(Backend backend, const ChainCase& test, const std::vector<float>& y, const NormNumbers& norm,
                   const std::vector<float>& dout) {
  const ChainDesc desc = whole_chain(test);
  const auto chain = make_chain(backend, desc);
  WholeRun run{std::vector<float>(dout.size(), 1e30F), std::vector<float>(y.size(), 1e30F),
               std::vector<std::uint8_t>(dout.size(), 255),
               std::vector<double>(static_cast<std::size_t>(2 * test.channels))};
  chain->forward(y.data(), {}, norm.view(), dropout_key, desc.out, run.out.data(), run.argmax.data());
  if (test.normalise) {
    chain->backward_sums(y.data(), {}, norm.view(), dout.data(), run.argmax.data(), dropout_key, desc.in,
                         run.sums.data());
  }
  const double count = static_cast<double>(test.samples * test.extent.volume());
  chain->backward_data(y.data(), {}, norm.view(), dout.data(), run.argmax.data(), dropout_key,
                       test.normalise ? run.sums.data() : nullptr, count, run.dy.data());
  return run;
}

class ChainTest : public testing::TestWithParam<std::tuple<Backend, ChainCase>> {
protected:
  [[nodiscard]] Backend backend() const { return std::get<0>(GetParam()); }
  [[nodiscard]] const ChainCase& test() const { return std::get<1>(GetParam()); }
  [[nodiscard]] ChainDesc desc() const { return whole_chain(test()); }
  [[nodiscard]] std::vector<float> y() const { return random_values(elements(desc(), desc().in), 1); }
  [[nodiscard]] std::vector<float> dout() const { return random_values(elements(desc(), desc().out), 2); }
  [[nodiscard]] NormNumbers norm() const { return batch_norm_of(desc(), y(), 3); }
};

TEST_P(ChainTest, ForwardMatchesTheDefinition) {
  const auto expected =
      naive_chain(test(), to_double(y()), to_double(norm().gamma), to_double(norm().beta), dropout_key);
  EXPECT_LT(relative_l2(run_whole(backend(), test(), y(), norm(), dout()).out, expected), 1e-5);
}

TEST_P(ChainTest, GradientMatchesFiniteDifferences) {
  const auto values = to_double(y());
  const auto gamma = to_double(norm().gamma);
  const auto beta = to_double(norm().beta);
  const auto weights = dout();
  const WholeRun run = run_whole(backend(), test(), y(), norm(), weights);
  const auto loss = [&](const std::vector<double>& at, const std::vector<double>& scale,
                        const std::vector<double>& shift) {
    const auto out = naive_chain(test(), at, scale, shift, dropout_key);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * static_cast<double>(weights[i]);
    return sum;
  };
  const double step = 1e-6;
  const auto slope = [&](const std::vector<double>& numbers, std::size_t i, const auto& function) {
    std::vector<double> moved = numbers;
    moved[i] = numbers[i] + step;
    const double above = function(moved);
    moved[i] = numbers[i] - step;
    return (above - function(moved)) / (2 * step);
  };
  std::vector<double> expected, got;
  for (std::size_t i = 0; i < values.size(); i += values.size() / 40 + 1) {
    expected.push_back(slope(values, i, [&](const auto& at) { return loss(at, gamma, beta); }));
    got.push_back(static_cast<double>(run.dy[i]));
  }
  EXPECT_LT(relative_l2(got, expected), 1e-4);
  if (!test().normalise) return;
  expected.clear();
  got.clear();
  const auto channels = static_cast<std::size_t>(test().channels);
  for (std::size_t c = 0; c < channels; c += channels / 8 + 1) {
    expected.push_back(slope(beta, c, [&](const auto& shift) { return loss(values, gamma, shift); }));
    got.push_back(run.sums[c]);
    expected.push_back(slope(gamma, c, [&](const auto& scale) { return loss(values, scale, beta); }));
    got.push_back(run.sums[channels + c]);
  }
  EXPECT_LT(relative_l2(got, expected), 1e-4);
}

TEST_P(ChainTest, FixedStatisticsDropTheirTerms) {
  const WholeRun whole = run_whole(backend(), test(), y(), norm(), dout());
  const auto chain = make_chain(backend(), desc());
  // In place: the gradient may overwrite y.
  std::vector<float> fixed = y();
  chain->backward_data(fixed.data(), {}, norm().view(), dout().data(), whole.argmax.data(), dropout_key, nullptr, 1,
                       fixed.data());
  const double count = static_cast<double>(test().samples * test().extent.volume());
  const auto values = y();
  const auto numbers = norm();
  const auto channels = static_cast<std::size_t>(test().channels);
  std::vector<double> rebuilt(fixed.size());
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    const std::size_t c = i % channels;
    const double unit = (static_cast<double>(values[i]) - static_cast<double>(numbers.mean[c])) *
                        static_cast<double>(numbers.inverse_deviation[c]);
    rebuilt[i] = static_cast<double>(fixed[i]) - static_cast<double>(numbers.gamma[c] * numbers.inverse_deviation[c]) *
                                                     (whole.sums[c] / count + unit * whole.sums[channels + c] / count);
  }
  EXPECT_LT(relative_l2(whole.dy, rebuilt), 1e-5);
}

TEST_P(ChainTest, BackwardDataInPlaceGivesTheSame) {
  const WholeRun whole = run_whole(backend(), test(), y(), norm(), dout());
  const auto chain = make_chain(backend(), desc());
  std::vector<float> inout = y();
  const double count = static_cast<double>(test().samples * test().extent.volume());
  chain->backward_data(inout.data(), {}, norm().view(), dout().data(), whole.argmax.data(), dropout_key,
                       test().normalise ? whole.sums.data() : nullptr, count, inout.data());
  EXPECT_EQ(inout, whole.dy);
}

TEST_P(ChainTest, MomentsAreMeanAndSquaredDistance) {
  // Far from zero, so that E[x²] − E[x]² in float would lose every digit.
  const auto values = random_values(elements(desc(), desc().in), 4, 1000, 1001);
  const auto channels = static_cast<std::size_t>(test().channels);
  std::vector<double> mean(channels, 5), m2(channels, 5), expected_mean(channels), expected_m2(channels);
  const double count = static_cast<double>(values.size() / channels);
  for (std::size_t i = 0; i < values.size(); ++i) expected_mean[i % channels] += static_cast<double>(values[i]) / count;
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected_m2[i % channels] += std::pow(static_cast<double>(values[i]) - expected_mean[i % channels], 2);
  }
  make_chain(backend(), desc())->moments(values.data(), mean.data(), m2.data());
  EXPECT_LT(relative_l2(mean, expected_mean), 1e-12);
  EXPECT_LT(relative_l2(m2, expected_m2), 1e-9);
}

TEST_P(ChainTest, DestinationMayLeaveOutputsOut) {
  ChainDesc narrow = desc();
  for (int i = 0; i < 3; ++i) narrow.dst.hi[i] = std::max<std::int64_t>(1, narrow.dst.hi[i] - 1);
  const WholeRun whole = run_whole(backend(), test(), y(), norm(), dout());
  const auto chain = make_chain(backend(), narrow);
  std::vector<float> out(static_cast<std::size_t>(elements(narrow, narrow.dst)));
  std::vector<std::uint8_t> argmax(whole.argmax.size());
  const auto values = y();
  chain->forward(values.data(), {}, norm().view(), dropout_key, narrow.out, out.data(), argmax.data());
  EXPECT_EQ(out, cut(narrow, whole.out, narrow.out, narrow.dst, 0.0F));

  // The left-out outputs' gradient is zero: the same as the whole chain given zeros there.
  const auto given = cut(narrow, dout(), narrow.out, narrow.dst, 0.0F);
  const auto with_zeros = cut(narrow, given, narrow.dst, narrow.out, 0.0F);
  ChainCase plain = test();
  const WholeRun expected = run_whole(backend(), plain, values, norm(), with_zeros);
  std::vector<double> sums(whole.sums.size());
  if (plain.normalise) {
    chain->backward_sums(values.data(), {}, norm().view(), given.data(), argmax.data(), dropout_key, narrow.in,
                         sums.data());
  }
  std::vector<float> dy(values.size());
  chain->backward_data(values.data(), {}, norm().view(), given.data(), argmax.data(), dropout_key,
                       plain.normalise ? sums.data() : nullptr,
                       static_cast<double>(plain.samples * plain.extent.volume()), dy.data());
  EXPECT_LT(relative_l2(dy, expected.dy), 1e-6);
}

std::string chain_test_name(const testing::TestParamInfo<std::tuple<Backend, ChainCase>>& info) {
  return std::string(backend_name(std::get<0>(info.param))) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Cases, ChainTest, testing::Combine(both_backends(), testing::ValuesIn(chain_cases())),
                         chain_test_name);

class ChainDetailTest : public BackendTest {};

TEST_P(ChainDetailTest, DropoutIsOffOutsideTraining) {
  ChainDesc desc = whole_chain({.samples = 1, .channels = 8, .extent = {1, 1, 4}, .keep = 0.5F});
  desc.training = false;
  const auto y = random_values(32, 1);
  std::vector<float> out(32);
  make_chain(GetParam(), desc)->forward(y.data(), {}, {}, dropout_key, desc.out, out.data(), nullptr);
  EXPECT_EQ(out, y);
}

TEST_P(ChainDetailTest, TheFirstWinsATie) {
  ChainDesc desc = whole_chain({.samples = 1,
                                .channels = 1,
                                .extent = {2, 2, 2},
                                .negative_slope = 0,
                                .pool = PoolKind::max,
                                .window = {Extent::cube(3), Extent::cube(2), Extent::cube(1)}});
  const std::vector<float> y(8, -1.0F);  // ReLU makes them all 0
  std::vector<float> out(1);
  std::uint8_t argmax = 255;
  make_chain(GetParam(), desc)->forward(y.data(), {}, {}, dropout_key, desc.out, out.data(), &argmax);
  EXPECT_EQ(argmax, 13);  // voxel (0,0,0) stands at (1,1,1) of the window, behind the padding
  EXPECT_EQ(out[0], 0.0F);
}

INSTANTIATE_TEST_SUITE_P(Backends, ChainDetailTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
