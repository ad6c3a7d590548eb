#include "halograd/kernels/conv3d.hpp"

#include "halograd/core/error.hpp"
#include "kernels/support.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

struct ConvResult {
  std::vector<double> y, dx, dw;
};

/// Forward and both gradients by the definition, seven loops in double.
ConvResult naive_conv(const Conv3dDesc& desc, const std::vector<float>& x, const std::vector<float>& w,
                      const std::vector<float>& dy) {
  const std::int64_t in = desc.in_channels;
  const std::int64_t out = desc.out_channels;
  ConvResult result{std::vector<double>(dy.size()), std::vector<double>(x.size()), std::vector<double>(w.size())};
  for (std::int64_t n = 0; n < desc.samples; ++n) {
    for (std::int64_t v = 0; v < desc.out.volume(); ++v) {
      const Index o{v / (desc.out.h * desc.out.w), v / desc.out.w % desc.out.h, v % desc.out.w};
      for (std::int64_t k = 0; k < desc.kernel.volume(); ++k) {
        const Index tap{k / (desc.kernel.h * desc.kernel.w), k / desc.kernel.w % desc.kernel.h, k % desc.kernel.w};
        Index i;
        bool inside = true;
        for (int axis = 0; axis < 3; ++axis) {
          i[axis] = o[axis] * desc.stride[axis] + tap[axis] - desc.pad_lo[axis];
          inside = inside && i[axis] >= 0 && i[axis] < desc.in[axis];
        }
        if (!inside) continue;
        const std::int64_t from = (((n * desc.in.d + i.d) * desc.in.h + i.h) * desc.in.w + i.w) * in;
        const std::int64_t to = (n * desc.out.volume() + v) * out;
        for (std::int64_t co = 0; co < out; ++co) {
          for (std::int64_t ci = 0; ci < in; ++ci) {
            const auto xi = static_cast<std::size_t>(from + ci);
            const auto wi = static_cast<std::size_t>((co * in + ci) * desc.kernel.volume() + k);
            const auto yi = static_cast<std::size_t>(to + co);
            result.y[yi] += static_cast<double>(x[xi]) * static_cast<double>(w[wi]);
            result.dx[xi] += static_cast<double>(dy[yi]) * static_cast<double>(w[wi]);
            result.dw[wi] += static_cast<double>(dy[yi]) * static_cast<double>(x[xi]);
          }
        }
      }
    }
  }
  return result;
}

Conv3dDesc random_conv(Dice& dice, std::int64_t in_channels, std::int64_t out_channels, std::int64_t largest) {
  Conv3dDesc desc;
  desc.samples = dice.between(1, 3);
  desc.in_channels = in_channels;
  desc.out_channels = out_channels;
  for (int i = 0; i < 3; ++i) {
    desc.kernel[i] = dice.one_of<std::int64_t>({1, 3, 3, 5});
    desc.stride[i] = dice.between(1, 2);
    const std::int64_t half = (desc.kernel[i] - 1) / 2;
    // A side has either padding or a margin that the buffer already holds.
    desc.pad_lo[i] = dice.between(0, 1) * half;
    const std::int64_t pad_hi = dice.between(0, 1) * half;
    desc.in[i] = dice.between(desc.kernel[i], std::max(desc.kernel[i], largest));
    desc.out[i] = (desc.in[i] + desc.pad_lo[i] + pad_hi - desc.kernel[i]) / desc.stride[i] + 1;
  }
  return desc;
}

std::string describe(const Conv3dDesc& desc) {
  const auto triple = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  return fmt::format("n{} {}->{} in {} out {} kernel {} stride {} pad {}", desc.samples, desc.in_channels,
                     desc.out_channels, triple(desc.in), triple(desc.out), triple(desc.kernel), triple(desc.stride),
                     triple(desc.pad_lo));
}

class Conv3dTest : public BackendTest {};

void expect_right(Backend backend, const Conv3dDesc& desc, std::uint64_t seed) {
  const auto x = random_values(desc.samples * desc.in.volume() * desc.in_channels, seed);
  const auto dy = random_values(desc.samples * desc.out.volume() * desc.out_channels, seed + 1);
  const auto w = random_values(desc.out_channels * desc.in_channels * desc.kernel.volume(), seed + 2);
  const ConvResult expected = naive_conv(desc, x, w, dy);
  const auto conv = make_conv3d(backend, desc);
  conv->set_weights(w.data());
  // Results are assigned: whatever the buffers held is gone.
  std::vector<float> y(dy.size(), 1e30F);
  std::vector<float> dx(x.size(), 1e30F);
  std::vector<float> dw(w.size(), 1e30F);
  conv->forward(x.data(), y.data());
  conv->backward_data(dy.data(), dx.data());
  conv->backward_weights(x.data(), dy.data(), dw.data());
  EXPECT_LT(relative_l2(y, expected.y), 1e-5) << describe(desc);
  EXPECT_LT(relative_l2(dx, expected.dx), 1e-5) << describe(desc);
  EXPECT_LT(relative_l2(dw, expected.dw), 1e-5) << describe(desc);
}

TEST_P(Conv3dTest, MatchesTheDefinitionOnRandomShapes) {
  Dice dice(1);
  const std::vector<std::int64_t> channels{1, 3, 4, 16, 20, 32};
  for (std::uint64_t i = 0; i < 30; ++i) {
    expect_right(GetParam(), random_conv(dice, dice.one_of(channels), dice.one_of(channels), 7), 10 * i);
  }
}

TEST_P(Conv3dTest, MatchesTheDefinitionWithManyChannels) {
  Dice dice(2);
  expect_right(GetParam(), random_conv(dice, 256, 64, 4), 1);
  expect_right(GetParam(), random_conv(dice, 32, 256, 4), 2);
}

TEST_P(Conv3dTest, GivesTheSameBitsTwice) {
  Dice dice(3);
  const Conv3dDesc desc = random_conv(dice, 16, 20, 9);
  const auto x = random_values(desc.samples * desc.in.volume() * desc.in_channels, 1);
  const auto dy = random_values(desc.samples * desc.out.volume() * desc.out_channels, 2);
  const auto w = random_values(desc.out_channels * desc.in_channels * desc.kernel.volume(), 3);
  const auto conv = make_conv3d(GetParam(), desc);
  conv->set_weights(w.data());
  std::vector<float> first(w.size());
  std::vector<float> second(w.size());
  conv->backward_weights(x.data(), dy.data(), first.data());
  conv->backward_weights(x.data(), dy.data(), second.data());
  EXPECT_EQ(first, second);
}

TEST_P(Conv3dTest, NewWeightsReplaceOldOnes) {
  const Conv3dDesc desc{
      .samples = 1, .in_channels = 4, .out_channels = 16, .in = {3, 4, 5}, .out = {3, 4, 5}, .pad_lo = {}};
  const auto x = random_values(desc.in.volume() * 4, 1);
  const auto old_weights = random_values(64, 2);
  const auto new_weights = random_values(64, 3);
  const auto conv = make_conv3d(GetParam(), desc);
  std::vector<float> y(static_cast<std::size_t>(desc.out.volume() * 16));
  conv->set_weights(old_weights.data());
  conv->forward(x.data(), y.data());
  conv->set_weights(new_weights.data());
  conv->forward(x.data(), y.data());
  EXPECT_LT(relative_l2(y, naive_conv(desc, x, new_weights, y).y), 1e-5);
}

/// The middle and the slabs around it: the bits of the whole, of no inputs but those that the windows cover.
TEST(ReferenceConv3d, PartsHaveTheBitsOfTheWhole) {
  Conv3dDesc desc{.samples = 2, .in_channels = 3, .out_channels = 9, .in = {9, 8, 7}, .out = {4, 4, 3}, .pad_lo = {}};
  desc.kernel = Extent::cube(3);
  desc.stride = Extent::cube(2);
  desc.pad_lo = {0, 1, 0};
  const auto x = random_values(desc.samples * desc.in.volume() * 3, 1);
  const auto w = random_values(9 * 3 * 27, 2);
  std::vector<float> y(static_cast<std::size_t>(desc.samples * desc.out.volume() * 9));
  const auto whole = make_conv3d(Backend::reference, desc);
  whole->set_weights(w.data());
  whole->forward(x.data(), y.data());

  desc.forward_parts = {{{1, 0, 0}, {3, 4, 3}}, {{0, 0, 0}, {1, 4, 3}}, {{3, 0, 0}, {4, 4, 3}}};
  const auto conv = make_conv3d(Backend::reference, desc);
  conv->set_weights(w.data());
  std::vector<float> got(y.size(), std::nanf(""));
  for (std::size_t part = 0; part < desc.forward_parts.size(); ++part) {
    const Box& box = desc.forward_parts[part];
    std::vector<float> seen = x;
    const std::int64_t plane = desc.in.h * desc.in.w * 3;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i) {
      const std::int64_t d = i / plane % desc.in.d;
      if (d < box.lo.d * 2 || d >= (box.hi.d - 1) * 2 + 3) seen[static_cast<std::size_t>(i)] = std::nanf("");
    }
    conv->forward_part(part, seen.data(), got.data());
  }
  EXPECT_EQ(got, y);
  conv->forward(x.data(), got.data());
  EXPECT_EQ(got, y);
  EXPECT_THROW(make_conv3d(Backend::cpu, desc), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Conv3dTest, both_backends(), backend_test_name);

/// A volume cut in depth, each part with one margin plane, put together again.
void expect_the_same_bits_cut(Backend backend, std::int64_t in, std::int64_t out, const Extent& extent,
                              std::int64_t cut) {
  const std::int64_t plane = extent.h * extent.w;
  Conv3dDesc whole{.samples = 1, .in_channels = in, .out_channels = out, .in = extent, .out = extent, .pad_lo = {}};
  whole.kernel = Extent::cube(3);
  whole.pad_lo = Extent::cube(1);
  whole.direct = true;
  Conv3dDesc lower = whole;
  lower.in.d = cut + 1;
  lower.out.d = cut;
  Conv3dDesc upper = whole;
  upper.in.d = extent.d - cut + 1;
  upper.out.d = extent.d - cut;
  upper.pad_lo.d = 0;
  const auto x = random_values(extent.volume() * in, 1);
  const auto w = random_values(out * in * 27, 2);
  std::vector<float> y(static_cast<std::size_t>(extent.volume() * out));
  std::vector<float> parts(y.size());
  const auto run = [&](const Conv3dDesc& desc, std::int64_t first_in, std::int64_t first_out, std::vector<float>& to) {
    const auto conv = make_conv3d(backend, desc);
    conv->set_weights(w.data());
    conv->forward(x.data() + first_in * plane * in, to.data() + first_out * plane * out);
  };
  run(whole, 0, 0, y);
  run(lower, 0, 0, parts);
  run(upper, cut - 1, cut, parts);
  EXPECT_EQ(y, parts) << in << " to " << out << " channels";
}

TEST_P(Conv3dTest, DirectForwardBitsDoNotDependOnTheCut) {
  expect_the_same_bits_cut(GetParam(), 5, 9, {7, 6, 5}, 3);
  // Few voxels of many channels: what the fastest kernels would sum in pieces that depend on the extents, or as a
  // matrix.
  expect_the_same_bits_cut(GetParam(), 256, 32, {4, 4, 4}, 2);
  expect_the_same_bits_cut(GetParam(), 128, 32, {5, 16, 16}, 2);
  expect_the_same_bits_cut(GetParam(), 64, 32, {4, 2, 2}, 2);
}

TEST(Conv3dDesc, CountsMultiplyAddsTwice) {
  Conv3dDesc desc{.samples = 2, .in_channels = 4, .out_channels = 16, .in = {9, 9, 9}, .out = {8, 8, 8}, .pad_lo = {}};
  desc.kernel = Extent::cube(3);
  EXPECT_EQ(desc.forward_flops(), 2.0 * 2 * 4 * 16 * 512 * 27);
}

}  // namespace
}  // namespace halograd::test
