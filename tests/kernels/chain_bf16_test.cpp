#include "halograd/kernels/chain.hpp"

#include "kernels/bf16_support.hpp"
#include "kernels/placed_chains.hpp"

namespace halograd::test {
namespace {

// A chain of bf16 tensors computes what the reference computes in float of the same numbers, each result rounded once.

const DropoutKey dropout_key{random_stream(13, RandomPurpose::dropout, 2, 4), 5};

/// Work for several threads, and windows with more rows than the kernels take at once.
std::vector<ChainCase> more_chain_cases() {
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  ChainCase large{.name = "large",
                  .samples = 1,
                  .channels = 16,
                  .extent = {17, 19, 18},
                  .normalise = true,
                  .negative_slope = 0.01F,
                  .pool = PoolKind::average,
                  .window = centred};
  ChainCase large_max = large;
  large_max.name = "large_max";
  large_max.pool = PoolKind::max;
  ChainCase large_plain{.name = "large_plain", .samples = 1, .channels = 40, .extent = {9, 11, 10}, .accumulate = true};
  ChainCase five{.name = "average5",
                 .samples = 1,
                 .channels = 21,
                 .extent = {10, 11, 12},
                 .negative_slope = 0.01F,
                 .pool = PoolKind::average,
                 .window = {Extent::cube(5), Extent::cube(2), Extent::cube(2)}};
  return {large, large_max, large_plain, five};
}

std::vector<PlacedChain> all_chains() {
  std::vector<ChainCase> cases = chain_cases();
  for (const ChainCase& test : more_chain_cases()) cases.push_back(test);
  return placed_chains(cases, {{2, 2, 2}, {3, 1, 2}});
}

/// Numbers in the neighbours' voxels around the box or, `inside`, in the own ones that gradients come home to.
template <typename T>
Faces<T> random_faces(const ChainDesc& desc, bool inside) {
  Faces<T> faces;
  std::uint64_t seed = inside ? 40 : 30;
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) {
      const Box box = inside ? returned_voxels(desc, i, high) : face_voxels(desc, i, high);
      const std::vector<float> values = bf16_values(elements(desc, box), seed++);
      faces.side(i, high) = std::vector<T>(values.begin(), values.end());
    }
  }
  return faces;
}

/// The chain run with tensors of type T: float or Bf16.
template <typename T>
class ChainRun {
public:
  ChainRun(Backend backend, ChainDesc desc)
      : desc_(desc),
        values_(bf16_values(elements(desc, desc.in), 1)),
        y_(desc, desc.src, desc.in, values_, nan_value),
        dout_(desc, desc.dst, written(), bf16_values(elements(desc, written()), 2), nan_value),
        received_(random_faces<T>(desc, true)),
        norm_(norm_of(desc, values_, 3)) {
    desc.type = std::is_same_v<T, Bf16> ? DType::bf16 : DType::f32;
    chain_ = make_chain(backend, desc);
  }

  [[nodiscard]] Moments moments() {
    Moments result;
    result.mean.resize(set_count(desc_) * static_cast<std::size_t>(desc_.channels), 5);
    result.m2 = result.mean;
    chain_->moments(y_.data(), result.mean.data(), result.m2.data());
    return result;
  }

  [[nodiscard]] std::vector<float> forward(std::vector<std::uint8_t>& argmax) {
    Faces<T> faces = random_faces<T>(desc_, false);
    const auto outputs = static_cast<std::size_t>(elements(desc_, written()));
    LaidOutAs<T> dst(desc_, desc_.dst, written(), std::vector<float>(outputs, 0x1p100F), untouched);
    argmax.assign(static_cast<std::size_t>(elements(desc_, desc_.out)), 255);
    chain_->forward(y_.data(), faces.template buffers<const T>(), norm_.view(), dropout_key, desc_.out, dst.data(),
                    argmax.data());
    EXPECT_TRUE(dst.surroundings_kept());
    return dst.values();
  }

  [[nodiscard]] std::vector<float> backward_faces(const std::vector<std::uint8_t>& argmax) {
    Faces<T> given = random_faces<T>(desc_, false);  // assigned, so that these numbers go
    chain_->backward_faces(dout_.data(), argmax.data(), dropout_key, given.template buffers<T>());
    std::vector<float> result;
    for (int i = 0; i < 3; ++i) {
      for (const bool high : {false, true}) {
        for (const T value : given.side(i, high)) result.push_back(static_cast<float>(value));
      }
    }
    return result;
  }

  [[nodiscard]] std::vector<double> backward_sums(const std::vector<std::uint8_t>& argmax) {
    std::vector<double> sums(set_count(desc_) * static_cast<std::size_t>(2 * desc_.channels));
    chain_->backward_sums(y_.data(), received_.template buffers<const T>(), norm_.view(), dout_.data(), argmax.data(),
                          dropout_key, desc_.in, sums.data());
    return sums;
  }

  /// Into a tensor of its own or, `in_place`, over y.
  [[nodiscard]] std::vector<float> backward_data(const std::vector<std::uint8_t>& argmax,
                                                 const NormGradient& statistics, bool in_place) {
    LaidOutAs<T> apart(desc_, desc_.src, desc_.in, bf16_values(elements(desc_, desc_.in), 5), untouched);
    LaidOutAs<T> over = y_;
    LaidOutAs<T>& dy = in_place ? over : apart;
    chain_->backward_data((in_place ? over : y_).data(), received_.template buffers<const T>(), norm_.view(),
                          dout_.data(), argmax.data(), dropout_key, statistics, dy.data());
    EXPECT_TRUE(dy.surroundings_kept());
    return dy.values();
  }

  [[nodiscard]] const NormNumbers& norm() const { return norm_; }

private:
  [[nodiscard]] Box written() const { return desc_.out.intersect(desc_.dst.box); }

  ChainDesc desc_;
  std::vector<float> values_;
  LaidOutAs<T> y_;
  LaidOutAs<T> dout_;
  Faces<T> received_;
  NormNumbers norm_;
  std::unique_ptr<Chain> chain_;
};

class Bf16ChainTest : public testing::TestWithParam<PlacedChain> {
protected:
  [[nodiscard]] const ChainDesc& desc() const { return GetParam().desc; }

  ChainRun<float> reference_{Backend::reference, GetParam().desc};
  ChainRun<Bf16> fast_{Backend::cpu, GetParam().desc};
  std::vector<std::uint8_t> argmax_;
};

TEST_P(Bf16ChainTest, MomentsAreThoseOfTheSameNumbers) {
  const Moments expected = reference_.moments();
  const Moments got = fast_.moments();
  EXPECT_LT(relative_l2(got.mean, expected.mean), 1e-12);
  EXPECT_LT(relative_l2(got.m2, expected.m2), 1e-12);
}

TEST_P(Bf16ChainTest, OutputsAreRoundedOnce) {
  const std::vector<float> expected = reference_.forward(argmax_);
  std::vector<std::uint8_t> argmax;
  expect_rounded(fast_.forward(argmax), expected, 2e-6);
  if (desc().pool == PoolKind::max) {
    const Box written = desc().out.intersect(desc().dst.box);
    EXPECT_EQ(cut(desc(), argmax, desc().out, written, std::uint8_t{255}),
              cut(desc(), argmax_, desc().out, written, std::uint8_t{255}));
  }
}

TEST_P(Bf16ChainTest, GradientsAreRoundedOnceAndSumsAreNot) {
  static_cast<void>(reference_.forward(argmax_));
  expect_rounded(fast_.backward_faces(argmax_), reference_.backward_faces(argmax_), 2e-6);
  const std::vector<double> sums = reference_.backward_sums(argmax_);
  EXPECT_LT(relative_l2(fast_.backward_sums(argmax_), sums), 1e-6);
  const double count = static_cast<double>((desc().per_sample ? 1 : desc().samples) * desc().in.volume());
  const StatisticsGradient statistics(desc(), reference_.norm(), sums, count);
  for (const NormGradient& through : {statistics.view(), NormGradient{}}) {
    const std::vector<float> expected = reference_.backward_data(argmax_, through, false);
    const std::vector<float> got = fast_.backward_data(argmax_, through, false);
    expect_rounded(got, expected, 4e-6);
    if (desc().accumulate) continue;
    EXPECT_EQ(fast_.backward_data(argmax_, through, true), got);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Bf16ChainTest, testing::ValuesIn(all_chains()), placed_name);

TEST(Bf16Chain, LetsEveryNumberThroughWhereNothingIsDone) {
  ChainDesc desc = whole_chain({.name = "copy", .samples = 1, .channels = 16, .extent = {16, 16, 16}});
  desc.type = DType::bf16;
  std::vector<Bf16> y(65536);
  for (std::size_t i = 0; i < y.size(); ++i) y[i].bits = static_cast<std::uint16_t>(i);
  std::vector<Bf16> out(y.size());
  std::vector<Bf16> dy(y.size());
  const auto chain = make_chain(Backend::cpu, desc);
  chain->forward(y.data(), {}, {}, dropout_key, desc.out, out.data(), nullptr);
  chain->backward_data(nullptr, {}, {}, out.data(), nullptr, dropout_key, {}, dy.data());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float value = static_cast<float>(y[i]);
    const float through = static_cast<float>(out[i]);
    ASSERT_TRUE(through == value || (std::isnan(through) && std::isnan(value))) << through << " of " << value;
    ASSERT_EQ(dy[i].bits, out[i].bits);
  }
}

}  // namespace
}  // namespace halograd::test
