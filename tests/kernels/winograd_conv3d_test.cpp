#include "halograd/kernels/cpu/winograd_conv3d.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/conv_floor.hpp"
#include "halograd/kernels/cpu/conv3d.hpp"
#include "kernels/support.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halograd::test {
namespace {

/// Plain sums come to 5e-7; measured here are up to 1.4e-6 and, for sums of 512 channels or 9,000 voxels, 2.5e-6.
constexpr double rounding = 4e-6;
constexpr float canary = 7e33F;

struct Sums {
  std::vector<double> y, dx, dw;
};

/// All three results by the definition, in double.
Sums exact_sums(const Conv3dDesc& c, const std::vector<float>& x, const std::vector<float>& w,
                const std::vector<float>& dy) {
  Sums sums{std::vector<double>(dy.size()), std::vector<double>(x.size()), std::vector<double>(w.size())};
  for (std::int64_t v = 0; v < c.samples * c.out.volume(); ++v) {
    const Index o{v / (c.out.h * c.out.w) % c.out.d, v / c.out.w % c.out.h, v % c.out.w};
    for (std::int64_t t = 0; t < 27; ++t) {
      const Index i{o.d + t / 9 - c.pad_lo.d, o.h + t / 3 % 3 - c.pad_lo.h, o.w + t % 3 - c.pad_lo.w};
      if (i.d < 0 || i.d >= c.in.d || i.h < 0 || i.h >= c.in.h || i.w < 0 || i.w >= c.in.w) continue;
      const std::int64_t n = v / c.out.volume();
      const std::int64_t from = (((n * c.in.d + i.d) * c.in.h + i.h) * c.in.w + i.w) * c.in_channels;
      for (std::int64_t out = 0; out < c.out_channels; ++out) {
        const auto yi = static_cast<std::size_t>(v * c.out_channels + out);
        for (std::int64_t in = 0; in < c.in_channels; ++in) {
          const auto xi = static_cast<std::size_t>(from + in);
          const auto wi = static_cast<std::size_t>((out * c.in_channels + in) * 27 + t);
          sums.y[yi] += double{x[xi]} * double{w[wi]};
          sums.dx[xi] += double{dy[yi]} * double{w[wi]};
          sums.dw[wi] += double{dy[yi]} * double{x[xi]};
        }
      }
    }
  }
  return sums;
}

std::string text(const Conv3dDesc& c) {
  const auto triple = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  return fmt::format("n{} {}->{} in {} out {} pad {}", c.samples, c.in_channels, c.out_channels, triple(c.in),
                     triple(c.out), triple(c.pad_lo));
}

Conv3dDesc cube(std::int64_t in_channels, std::int64_t out_channels, std::int64_t width) {
  Conv3dDesc c;
  c.samples = 1;
  c.in_channels = in_channels;
  c.out_channels = out_channels;
  c.in = c.out = Extent::cube(width);
  c.kernel = Extent::cube(3);
  c.pad_lo = Extent::cube(1);
  return c;
}

/// A rank's box: on either side of each dimension zeros, 0 to 2 of them, or a margin that the buffer holds.
Conv3dDesc random_box(Dice& dice) {
  const std::vector<std::int64_t> channels{16, 32, 48};
  Conv3dDesc c = cube(dice.one_of(channels), dice.one_of(channels), 1);
  c.samples = dice.between(1, 2);
  for (int i = 0; i < 3; ++i) {
    c.pad_lo[i] = dice.between(0, 2);
    const std::int64_t pad_hi = dice.between(0, 2);
    c.out[i] = dice.between(1, 9);
    c.in[i] = std::max<std::int64_t>(1, c.out[i] + 2 - c.pad_lo[i] - pad_hi);
    c.out[i] = std::max<std::int64_t>(1, c.in[i] + c.pad_lo[i] + pad_hi - 2);
  }
  return c;
}

/// A buffer of whatever numbers, with a canary on either side.
class Guarded {
public:
  explicit Guarded(std::size_t count) : values_(count + 32, canary) {}
  float* data() { return values_.data() + 16; }
  [[nodiscard]] std::vector<float> values() const { return {values_.begin() + 16, values_.end() - 16}; }
  [[nodiscard]] bool intact() const {
    const auto is_canary = [](float value) { return value == canary; };
    return std::all_of(values_.begin(), values_.begin() + 16, is_canary) &&
           std::all_of(values_.end() - 16, values_.end(), is_canary);
  }

private:
  std::vector<float> values_;
};

struct Results {
  std::vector<float> y, dx, dw;
  friend bool operator==(const Results&, const Results&) = default;
};

Results run(Conv3d& conv, const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& dy) {
  Guarded y(dy.size());
  Guarded dx(x.size());
  Guarded dw(w.size());
  conv.forward(x.data(), y.data());
  conv.backward_data(dy.data(), dx.data());
  conv.backward_weights(x.data(), dy.data(), dw.data());
  EXPECT_TRUE(y.intact() && dx.intact() && dw.intact());
  return {y.values(), dx.values(), dw.values()};
}

struct Case {
  std::vector<float> x, w, dy;
  explicit Case(const Conv3dDesc& c, std::uint64_t seed = 1)
      : x(random_values(c.samples * c.in.volume() * c.in_channels, seed)),
        w(random_values(c.in_channels * c.out_channels * 27, seed + 1)),
        dy(random_values(c.samples * c.out.volume() * c.out_channels, seed + 2)) {}
};

void expect_right(const Conv3dDesc& c, std::uint64_t seed) {
  ASSERT_TRUE(cpu::fits_winograd(c)) << text(c);
  const Case given(c, seed);
  const Sums want = exact_sums(c, given.x, given.w, given.dy);
  const auto conv = cpu::make_winograd_conv3d(c);
  conv->set_weights(given.w.data());
  const Results got = run(*conv, given.x, given.w, given.dy);
  EXPECT_LT(relative_l2(got.y, want.y), rounding) << text(c);
  EXPECT_LT(relative_l2(got.dx, want.dx), rounding) << text(c);
  EXPECT_LT(relative_l2(got.dw, want.dw), rounding) << text(c);
  // Scratch memory is full of other numbers now.
  EXPECT_EQ(run(*conv, given.x, given.w, given.dy), got) << text(c);
}

TEST(WinogradConv3d, MatchesTheDefinitionOnRandomBoxes) {
  Dice dice(1);
  for (std::uint64_t i = 0; i < 40; ++i) expect_right(random_box(dice), 10 * i);
}

TEST(WinogradConv3d, MatchesTheDefinitionWithManyBlocksOfTiles) {
  Conv3dDesc c = cube(16, 32, 21);
  c.in.d = 22;  // a margin plane below
  c.pad_lo.d = 0;
  expect_right(c, 1);
}

TEST(WinogradConv3d, MatchesTheDefinitionWhereWeightsAreTransformedInEachRun) {
  expect_right(cube(144, 112, 4), 1);  // 9.3 MB of them
}

TEST(WinogradConv3d, SumsOfManyChannelsStayAccurate) {
  expect_right(cube(512, 16, 5), 1);
}

TEST(WinogradConv3d, KeepsItsAccuracyWhereAllNumbersArePositive) {
  const Conv3dDesc c = cube(64, 64, 8);
  Case given(c);
  for (std::vector<float>* values : {&given.x, &given.dy}) {
    for (float& value : *values) value = std::abs(value);
  }
  const Sums want = exact_sums(c, given.x, given.w, given.dy);
  const auto conv = cpu::make_winograd_conv3d(c);
  conv->set_weights(given.w.data());
  const Results got = run(*conv, given.x, given.w, given.dy);
  EXPECT_LT(relative_l2(got.y, want.y), rounding);
  EXPECT_LT(relative_l2(got.dx, want.dx), rounding);
  EXPECT_LT(relative_l2(got.dw, want.dw), rounding);
}

TEST(WinogradConv3d, GivesTheSameBitsForAnyNumberOfThreads) {
  const int before = thread_count();
  for (const Conv3dDesc& c : {cube(32, 48, 16), cube(144, 112, 8)}) {
    const Case given(c);
    std::vector<Results> results;
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      const auto conv = cpu::make_winograd_conv3d(c);
      conv->set_weights(given.w.data());
      results.push_back(run(*conv, given.x, given.w, given.dy));
    }
    omp_set_num_threads(before);
    EXPECT_EQ(results[0], results[1]) << text(c);
    EXPECT_EQ(results[0], results[2]) << text(c);
  }
}

TEST(WinogradConv3d, RunsWithOtherThreadsThanItWasMadeWith) {
  const int before = thread_count();
  const Conv3dDesc c = cube(16, 16, 12);
  const Case given(c);
  omp_set_num_threads(2);
  const auto conv = cpu::make_winograd_conv3d(c);
  conv->set_weights(given.w.data());
  const Results two = run(*conv, given.x, given.w, given.dy);
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    EXPECT_EQ(run(*conv, given.x, given.w, given.dy), two);
  }
  omp_set_num_threads(before);
}

TEST(WinogradConv3d, MakesAndHoldsWhatIsCalledOnly) {
  Conv3dDesc c = cube(32, 16, 8);
  const auto all = cpu::make_winograd_conv3d(c);
  EXPECT_EQ(all->implementations(), (std::vector<std::string>(3, "winograd:2x4x4")));
  c.input_gradient = false;
  const auto first_layer = cpu::make_winograd_conv3d(c);
  EXPECT_EQ(first_layer->implementations().size(), 2U);
  EXPECT_LT(first_layer->held_bytes(), all->held_bytes());
  // Taps and transformed weights of one pass.
  EXPECT_GT(first_layer->held_bytes(), (27 + 144) * 32 * 16 * 4);
  c.training = false;
  EXPECT_EQ(cpu::make_winograd_conv3d(c)->implementations().size(), 1U);
}

TEST(WinogradConv3d, IsPreferredByShapeAlone) {
  EXPECT_TRUE(cpu::prefers_winograd(cube(64, 64, 16)));
  EXPECT_TRUE(cpu::prefers_winograd(cube(768, 256, 16)));
  EXPECT_FALSE(cpu::prefers_winograd(cube(256, 256, 8)));  // too few tiles
  EXPECT_FALSE(cpu::prefers_winograd(cube(64, 24, 64)));   // channels don't fill a line
  EXPECT_FALSE(cpu::prefers_winograd(cube(1, 64, 64)));
  EXPECT_TRUE(cpu::prefers_winograd(cube(32, 64, 64)));
  Conv3dDesc cosmoflow = cube(32, 64, 32);
  cosmoflow.samples = 8;  // keeps its way however many samples there are
  EXPECT_FALSE(cpu::prefers_winograd(cosmoflow));
  EXPECT_FALSE(cpu::prefers_winograd(cube(16, 32, 64)));
  Conv3dDesc thin = cube(64, 64, 32);
  thin.in.w = thin.out.w = 1;  // three of four outputs would stick out
  EXPECT_FALSE(cpu::prefers_winograd(thin));
  Conv3dDesc strided = cube(64, 64, 32);
  strided.stride = Extent::cube(2);
  strided.out = Extent::cube(16);
  EXPECT_FALSE(cpu::prefers_winograd(strided));
  Conv3dDesc margins = cube(64, 64, 16);
  margins.in.d = 18;
  margins.pad_lo.d = 0;
  EXPECT_TRUE(cpu::prefers_winograd(margins));
  EXPECT_EQ(cpu::make_conv3d(margins)->implementations(), (std::vector<std::string>(3, "winograd:2x4x4")));
}

TEST(WinogradConv3d, IsWhatTheFloorOfAStepTimes) {
  const auto calls = time_convolution(Device(), cube(64, 64, 16), 1);
  ASSERT_EQ(calls.size(), 3U);
  for (const ConvTiming& timing : calls) EXPECT_EQ(timing.implementation, "winograd:2x4x4");
}

}  // namespace
}  // namespace halograd::test
