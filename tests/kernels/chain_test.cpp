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
  std::vector<float> dy;  ///< less what `accumulate` found there
  std::vector<std::uint8_t> argmax;
  std::vector<double> sums;
};

class ChainTest : public testing::TestWithParam<std::tuple<Backend, ChainCase>> {
protected:
  void SetUp() override {
    const ChainDesc desc = this->desc();
    y_ = random_values(elements(desc, desc.in), 1);
    dout_ = random_values(elements(desc, desc.out), 2);
    norm_ = norm_of(desc, y_, 3);
    held_ = desc.accumulate ? random_values(elements(desc, desc.in), 5) : std::vector<float>(y_.size(), nan_value);
  }

  [[nodiscard]] Backend backend() const { return std::get<0>(GetParam()); }
  [[nodiscard]] const ChainCase& test() const { return std::get<1>(GetParam()); }
  [[nodiscard]] ChainDesc desc() const { return whole_chain(test()); }
  [[nodiscard]] double count() const {
    return static_cast<double>((test().per_sample ? 1 : test().samples) * test().extent.volume());
  }
  /// y where the backward pass may look at it.
  [[nodiscard]] static bool reads_y(const ChainDesc& desc) { return desc.normalise || desc.negative_slope != 1; }

  /// The gradient of y from one call. In place over y where that is allowed, so long as nobody wants both.
  [[nodiscard]] std::vector<float> backward_data(Chain& chain, const ChainDesc& desc, const std::vector<float>& dout,
                                                 const std::vector<std::uint8_t>& argmax,
                                                 const NormGradient& statistics, bool in_place) const {
    LaidOut y(desc, desc.src, desc.in, y_, nan_value);
    LaidOut given(desc, desc.dst, desc.out.intersect(desc.dst.box), dout, nan_value);
    LaidOut apart(desc, desc.src, desc.in, held_, untouched);
    LaidOut& dy = in_place ? y : apart;
    chain.backward_data(reads_y(desc) ? y.data() : nullptr, {}, norm_.view(), given.data(), argmax.data(), dropout_key,
                        statistics, dy.data());
    EXPECT_TRUE(dy.surroundings_kept());
    std::vector<float> result = dy.values();
    for (std::size_t i = 0; i < result.size() && desc.accumulate; ++i) result[i] -= held_[i];
    return result;
  }

  [[nodiscard]] WholeRun run(const ChainDesc& desc, const std::vector<float>& dout) const {
    const auto chain = make_chain(backend(), desc);
    const Box written = desc.out.intersect(desc.dst.box);
    const auto outputs = static_cast<std::size_t>(elements(desc, written));
    LaidOut y(desc, desc.src, desc.in, y_, nan_value);
    LaidOut dst(desc, desc.dst, written, std::vector<float>(outputs, 1e30F), untouched);
    WholeRun run;
    run.argmax.assign(static_cast<std::size_t>(elements(desc, desc.out)), 255);
    run.sums.resize(set_count(desc) * static_cast<std::size_t>(2 * desc.channels));
    chain->forward(y.data(), {}, norm_.view(), dropout_key, desc.out, dst.data(), run.argmax.data());
    EXPECT_TRUE(dst.surroundings_kept());
    run.out = dst.values();
    LaidOut given(desc, desc.dst, written, dout, nan_value);
    if (desc.normalise) {
      chain->backward_sums(y.data(), {}, norm_.view(), given.data(), run.argmax.data(), dropout_key, desc.in,
                           run.sums.data());
    }
    run.dy = backward_data(*chain, desc, dout, run.argmax, statistics(run.sums).view(), false);
    return run;
  }
  [[nodiscard]] WholeRun run() const { return run(desc(), dout_); }

  [[nodiscard]] StatisticsGradient statistics(const std::vector<double>& sums) const {
    return {desc(), norm_, sums, count()};
  }

  std::vector<float> y_, dout_, held_;
  NormNumbers norm_;
};

TEST_P(ChainTest, ForwardMatchesTheDefinition) {
  const auto expected = naive_chain(test(), to_double(y_), to_double(norm_.gamma), to_double(norm_.beta), dropout_key);
  EXPECT_LT(relative_l2(run().out, expected), 1e-5);
}

TEST_P(ChainTest, GradientMatchesFiniteDifferences) {
  const auto values = to_double(y_);
  const auto gamma = to_double(norm_.gamma);
  const auto beta = to_double(norm_.beta);
  const WholeRun run = this->run();
  const auto loss = [&](const std::vector<double>& at, const std::vector<double>& scale,
                        const std::vector<double>& shift) {
    const auto out = naive_chain(test(), at, scale, shift, dropout_key);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * static_cast<double>(dout_[i]);
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
  // Every set of statistics has its own share of the gradients of gamma and beta.
  const auto total = [&](std::size_t i) {
    double sum = 0;
    for (std::size_t set = 0; set < set_count(desc()); ++set) sum += run.sums[2 * set * channels + i];
    return sum;
  };
  for (std::size_t c = 0; c < channels; c += channels / 8 + 1) {
    expected.push_back(slope(beta, c, [&](const auto& shift) { return loss(values, gamma, shift); }));
    got.push_back(total(c));
    expected.push_back(slope(gamma, c, [&](const auto& scale) { return loss(values, scale, beta); }));
    got.push_back(total(channels + c));
  }
  EXPECT_LT(relative_l2(got, expected), 1e-4);
}

TEST_P(ChainTest, FixedStatisticsDropTheirTerms) {
  const WholeRun whole = run();
  const auto chain = make_chain(backend(), desc());
  const auto fixed = backward_data(*chain, desc(), dout_, whole.argmax, {}, !test().accumulate);
  const StatisticsGradient terms = statistics(whole.sums);
  const auto channels = static_cast<std::size_t>(test().channels);
  const std::size_t set_elements = y_.size() / set_count(desc());
  std::vector<double> rebuilt = to_double(fixed);
  for (std::size_t i = 0; i < fixed.size() && test().normalise; ++i) {
    const std::size_t at = i / set_elements * channels + i % channels;
    const double unit = (static_cast<double>(y_[i]) - static_cast<double>(norm_.mean[at])) *
                        static_cast<double>(norm_.inverse_deviation[at]);
    rebuilt[i] += terms.offset[at] + unit * terms.pull[at];
  }
  EXPECT_LT(relative_l2(whole.dy, rebuilt), 1e-5);
}

TEST_P(ChainTest, BackwardDataInPlaceGivesTheSame) {
  if (test().accumulate) return;
  const WholeRun whole = run();
  const auto chain = make_chain(backend(), desc());
  EXPECT_EQ(backward_data(*chain, desc(), dout_, whole.argmax, statistics(whole.sums).view(), true), whole.dy);
}

TEST_P(ChainTest, MomentsAreMeanAndSquaredDistance) {
  // Far from zero, so that E[x²] − E[x]² in float would lose every digit.
  const auto values = random_values(elements(desc(), desc().in), 4, 1000, 1001);
  LaidOut y(desc(), desc().src, desc().in, values, nan_value);
  const Moments expected = moments_by_definition(test().samples, test().channels, test().per_sample, values);
  std::vector<double> mean(expected.mean.size(), 5), m2(expected.mean.size(), 5);
  make_chain(backend(), desc())->moments(y.data(), mean.data(), m2.data());
  EXPECT_LT(relative_l2(mean, expected.mean), 1e-12);
  EXPECT_LT(relative_l2(m2, expected.m2), 1e-9);
}

TEST_P(ChainTest, DestinationMayLeaveOutputsOut) {
  ChainDesc narrow = desc();
  narrow.dst.box = narrow.out;
  for (int i = 0; i < 3; ++i) narrow.dst.box.hi[i] = std::max<std::int64_t>(1, narrow.out.hi[i] - 1);
  const auto given = cut(narrow, dout_, narrow.out, narrow.dst.box, 0.0F);
  const WholeRun got = run(narrow, given);
  EXPECT_EQ(got.out, cut(narrow, run().out, narrow.out, narrow.dst.box, 0.0F));
  // The left-out outputs' gradient is zero: the same as the whole chain given zeros there.
  const WholeRun expected = run(desc(), cut(narrow, given, narrow.dst.box, narrow.out, 0.0F));
  EXPECT_LT(relative_l2(got.dy, expected.dy), 1e-6);
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
