#include "halograd/kernels/cpu/conv3d.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace halograd {
namespace {

std::vector<float> noise(std::int64_t count, std::uint32_t purpose) {
  const RandomStream stream{7, purpose, 0};
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * stream.uniform(i) - 1;
  return values;
}

/// Calls visit(x index, w index, y index) for every product of the convolution.
template <typename Visit>
void for_each_product(const Conv3dDesc& c, const Visit& visit) {
  const std::int64_t taps = c.kernel.volume();
  for (std::int64_t n = 0; n < c.samples; ++n) {
    for (std::int64_t v = 0; v < c.out.volume(); ++v) {
      const Index at{v / (c.out.h * c.out.w), v / c.out.w % c.out.h, v % c.out.w};
      for (std::int64_t t = 0; t < taps; ++t) {
        const Index tap{t / (c.kernel.h * c.kernel.w), t / c.kernel.w % c.kernel.h, t % c.kernel.w};
        Index from;
        bool inside = true;
        for (int i = 0; i < 3; ++i) {
          from[i] = at[i] * c.stride[i] + tap[i] - c.pad_lo[i];
          inside = inside && from[i] >= 0 && from[i] < c.in[i];
        }
        if (!inside) continue;
        const std::int64_t x = (((n * c.in.d + from.d) * c.in.h + from.h) * c.in.w + from.w) * c.in_channels;
        const std::int64_t y = (n * c.out.volume() + v) * c.out_channels;
        for (std::int64_t o = 0; o < c.out_channels; ++o) {
          for (std::int64_t i = 0; i < c.in_channels; ++i) {
            visit(static_cast<std::size_t>(x + i), static_cast<std::size_t>((o * c.in_channels + i) * taps + t),
                  static_cast<std::size_t>(y + o));
          }
        }
      }
    }
  }
}

/// Compares with sums in double; values lie in [-1, 1], so the error of a sum of n products grows with n at most.
void expect_close(const std::vector<float>& got, const std::vector<double>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  double scale = 1;
  for (const double value : want) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-5 * scale) << what << " element " << i;
  }
}

void expect_right(const Conv3dDesc& c) {
  const auto x = noise(c.samples * c.in_channels * c.in.volume(), 1);
  const auto w = noise(c.in_channels * c.out_channels * c.kernel.volume(), 2);
  const auto dy = noise(c.samples * c.out_channels * c.out.volume(), 3);
  std::vector<double> y_want(dy.size());
  std::vector<double> dx_want(x.size());
  std::vector<double> dw_want(w.size());
  for_each_product(c, [&](std::size_t ix, std::size_t iw, std::size_t iy) {
    y_want[iy] += double{x[ix]} * w[iw];
    dx_want[ix] += double{dy[iy]} * w[iw];
    dw_want[iw] += double{dy[iy]} * x[ix];
  });

  const auto conv = cpu::make_conv3d(c);
  conv->set_weights(w.data());
  for (int run = 0; run < 2; ++run) {
    // Assigned, never accumulated: what the results held before must not matter, nor that it is the second run.
    std::vector<float> y(dy.size(), 1e6F);
    std::vector<float> dx(x.size(), 1e6F);
    std::vector<float> dw(w.size(), 1e6F);
    conv->forward(x.data(), y.data());
    expect_close(y, y_want, "y");
    if (!c.training) continue;
    conv->backward_weights(x.data(), dy.data(), dw.data());
    expect_close(dw, dw_want, "dw");
    if (!c.input_gradient) continue;
    conv->backward_data(dy.data(), dx.data());
    expect_close(dx, dx_want, "dx");
  }
}

Conv3dDesc same_padding(std::int64_t samples, std::int64_t in_channels, std::int64_t out_channels, std::int64_t width,
                        std::int64_t stride = 1) {
  Conv3dDesc c;
  c.samples = samples;
  c.in_channels = in_channels;
  c.out_channels = out_channels;
  c.in = Extent::cube(width);
  c.kernel = Extent::cube(3);
  c.stride = Extent::cube(stride);
  c.pad_lo = Extent::cube(1);
  c.out = Extent::cube((width - 1) / stride + 1);
  return c;
}

TEST(CpuConv3d, MatchesDirectSumsWithOddChannels) {
  for (const std::int64_t in : {1, 2, 3, 4, 5, 16, 17, 32}) {
    for (const std::int64_t out : {1, 3, 5, 16, 32}) {
      SCOPED_TRACE(std::to_string(in) + " to " + std::to_string(out) + " channels");
      expect_right(same_padding(2, in, out, 5));
    }
  }
}

TEST(CpuConv3d, MatchesDirectSumsOnSmallVolumes) {
  for (const std::int64_t width : {1, 2, 3, 4, 7}) {
    for (const std::int64_t stride : {1, 2}) {
      SCOPED_TRACE(std::to_string(width) + " wide, stride " + std::to_string(stride));
      expect_right(same_padding(1, 4, 16, width, stride));
      expect_right(same_padding(3, 32, 48, width, stride));
    }
  }
}

TEST(CpuConv3d, MatchesDirectSumsWithMarginsInsteadOfPadding) {
  const RandomStream stream{11, 0, 0};
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const auto pick = [&](std::uint64_t which, std::int64_t lowest, std::int64_t highest) {
      return lowest + static_cast<std::int64_t>(stream.bits(trial * 64 + which) %
                                                static_cast<std::uint64_t>(highest - lowest + 1));
    };
    Conv3dDesc c;
    c.samples = pick(0, 1, 2);
    c.in_channels = trial % 3 == 0 ? 16 : pick(1, 1, 20);
    c.out_channels = trial % 2 == 0 ? 16 : pick(2, 1, 20);
    for (int i = 0; i < 3; ++i) {
      const auto base = static_cast<std::uint64_t>(8 * (i + 1));
      c.kernel[i] = pick(base, 1, 3);
      c.stride[i] = pick(base + 1, 1, 2);
      c.out[i] = pick(base + 2, 1, 6);
      c.pad_lo[i] = pick(base + 3, 0, c.kernel[i] - 1);
      const std::int64_t pad_hi = pick(base + 4, 0, c.kernel[i] - 1);
      const std::int64_t spare = pick(base + 5, 0, c.stride[i] - 1);
      const std::int64_t needed = (c.out[i] - 1) * c.stride[i] + c.kernel[i] - c.pad_lo[i];
      c.in[i] = std::max<std::int64_t>(1, pad_hi > 0 ? needed - pad_hi : needed + spare);
    }
    SCOPED_TRACE("trial " + std::to_string(trial));
    expect_right(c);
  }
}

TEST(CpuConv3d, MatchesDirectSumsForUnetsPointwiseConvolution) {
  Conv3dDesc c = same_padding(1, 64, 3, 6);
  c.kernel = Extent::cube(1);
  c.pad_lo = {};
  expect_right(c);
}

TEST(CpuConv3d, EvaluationMakesTheForwardPrimitiveOnly) {
  Conv3dDesc c = same_padding(1, 16, 16, 6);
  c.training = false;
  expect_right(c);
  EXPECT_EQ(cpu::make_conv3d(c)->implementations().size(), 1U);
  c.training = true;
  c.input_gradient = false;
  EXPECT_EQ(cpu::make_conv3d(c)->implementations().size(), 2U);
}

TEST(CpuConv3d, AcceptsNoSamples) {
  const Conv3dDesc c = same_padding(0, 4, 16, 8);
  const auto conv = cpu::make_conv3d(c);
  std::vector<float> dw(4 * 16 * 27, 5.0F);
  conv->set_weights(dw.data());
  conv->forward(nullptr, nullptr);
  conv->backward_data(nullptr, nullptr);
  conv->backward_weights(nullptr, nullptr, dw.data());
  EXPECT_EQ(dw, std::vector<float>(dw.size(), 0.0F));
}

TEST(CpuConv3d, RefusesVoxelsBehindTheLastWindow) {
  Conv3dDesc c = same_padding(1, 4, 16, 8);
  c.in.d = 11;
  EXPECT_THROW(cpu::make_conv3d(c), UsageError);
}

TEST(CpuConv3d, DeepLayersNeverRepackTheirWeights) {
  const std::int64_t weight_bytes = 256 * 256 * 27 * 4;
  for (const std::int64_t samples : {1, 4, 16}) {
    const auto conv = cpu::make_conv3d(same_padding(samples, 256, 256, 2));
    EXPECT_LT(conv->held_bytes(), weight_bytes) << samples << " samples";
    for (const std::string& name : conv->implementations()) EXPECT_TRUE(name.starts_with("matrix:")) << name;
  }
}

TEST(CpuConv3d, MatchesDirectSumsAsAMatrixProduct) {
  expect_right(same_padding(16, 24, 40, 2));  // more rows than always go that way
  expect_right(same_padding(1, 256, 256, 2));
  Conv3dDesc margined = same_padding(2, 48, 32, 4);
  margined.out = {2, 2, 3};
  margined.pad_lo = {0, 1, 0};
  margined.in = {4, 2, 4};
  expect_right(margined);
}

TEST(CpuConv3d, MatchesDirectSumsWhereWindowsTile) {
  for (const Extent& kernel : {Extent{2, 2, 2}, Extent{1, 2, 3}, Extent{4, 1, 1}}) {
    Conv3dDesc c = same_padding(2, 12, 20, 5);
    c.kernel = kernel;
    c.stride = kernel;
    c.pad_lo = {};
    c.in = {5 * kernel.d, 5 * kernel.h, 5 * kernel.w};
    expect_right(c);
    for (const std::string& name : cpu::make_conv3d(c)->implementations()) {
      EXPECT_TRUE(name.starts_with("patches:")) << name;
    }
  }
}

/// oneDNN 2.6's just-in-time backward-weights sum wrongly there.
TEST(CpuConv3d, MatchesDirectSumsWhereSeveralStridedWindowsBeginBelowTheVolume) {
  Conv3dDesc c = same_padding(1, 16, 16, 14);
  c.kernel.d = 5;
  c.stride.d = 2;
  c.pad_lo.d = 3;
  c.in.d = 4;
  c.out.d = 3;
  expect_right(c);
  c.kernel.d = 4;
  c.in.d = 5;
  expect_right(c);
}

TEST(CpuConv3d, GivesTheSameBitsEveryTime) {
  for (const Conv3dDesc& c : {same_padding(1, 256, 256, 2), same_padding(2, 32, 64, 9)}) {
    const auto x = noise(c.samples * c.in_channels * c.in.volume(), 1);
    const auto w = noise(c.in_channels * c.out_channels * 27, 2);
    const auto dy = noise(c.samples * c.out_channels * c.out.volume(), 3);
    const auto conv = cpu::make_conv3d(c);
    conv->set_weights(w.data());
    std::vector<float> first;
    for (int run = 0; run < 5; ++run) {
      std::vector<float> y(dy.size());
      std::vector<float> dx(x.size());
      std::vector<float> dw(w.size());
      conv->forward(x.data(), y.data());
      conv->backward_data(dy.data(), dx.data());
      conv->backward_weights(x.data(), dy.data(), dw.data());
      y.insert(y.end(), dx.begin(), dx.end());
      y.insert(y.end(), dw.begin(), dw.end());
      if (run == 0) first = y;
      EXPECT_EQ(y, first) << "run " << run;
    }
  }
}

TEST(CpuConv3d, CosmoflowConvolutionsRunFastImplementations) {
  std::vector<Conv3dDesc> layers = {same_padding(1, 4, 16, 128), same_padding(1, 16, 32, 64),
                                    same_padding(1, 32, 64, 32), same_padding(1, 64, 128, 16, 2),
                                    same_padding(1, 128, 256, 4)};
  layers[0].input_gradient = false;
  for (const Conv3dDesc& layer : layers) {
    for (const std::string& name : cpu::make_conv3d(layer)->implementations()) {
      EXPECT_EQ(name.find("ref"), std::string::npos) << name << ", " << layer.in_channels << " channels";
      EXPECT_EQ(name.find("gemm"), std::string::npos) << name << ", " << layer.in_channels << " channels";
    }
  }
}

}  // namespace
}  // namespace halograd
