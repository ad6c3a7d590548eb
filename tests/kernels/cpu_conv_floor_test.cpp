#include "halograd/kernels/cpu/conv_floor.hpp"

#include "halograd/kernels/deconv3d.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace halograd {
namespace {

Conv3dDesc layer(std::int64_t width) {
  Conv3dDesc c;
  c.samples = 1;
  c.in_channels = 16;
  c.out_channels = 32;
  c.in = Extent::cube(width);
  c.out = Extent::cube(width);
  c.kernel = Extent::cube(3);
  c.pad_lo = Extent::cube(1);
  return c;
}

TEST(ConvFloor, TimesEachCallThatAStepMakes) {
  Conv3dDesc c = layer(8);
  const auto calls = cpu::time_convolution(c, 2);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].call, "forward");
  EXPECT_EQ(calls[1].call, "backward_data");
  EXPECT_EQ(calls[2].call, "backward_weights");
  for (const cpu::ConvTiming& timing : calls) {
    EXPECT_GT(timing.seconds, 0);
    EXPECT_FALSE(timing.implementation.empty());
  }
  c.input_gradient = false;
  EXPECT_EQ(cpu::time_convolution(c, 1).size(), 2U);
  c.training = false;
  EXPECT_EQ(cpu::time_convolution(c, 1).size(), 1U);
}

TEST(ConvFloor, LeavesMarginsOut) {
  Conv3dDesc inner = layer(8);  // both neighbours' planes in the buffer
  inner.in.d = 10;
  inner.pad_lo.d = 0;
  Conv3dDesc strided = layer(8);  // one plane below an even cut
  strided.stride = Extent::cube(2);
  strided.out = Extent::cube(4);
  strided.in.d = 9;
  strided.pad_lo.d = 0;
  EXPECT_GT(cpu::conv_floor_seconds({inner, strided}, 1), 0);
}

std::vector<std::string> calls_of(const Deconv3dDesc& desc) {
  std::vector<std::string> calls;
  for (const cpu::ConvTiming& timing : cpu::time_convolution(transposed(desc), 1)) {
    EXPECT_GT(timing.seconds, 0);
    EXPECT_EQ(timing.implementation.find("ref"), std::string::npos) << timing.implementation;
    calls.push_back(timing.call);
  }
  std::sort(calls.begin(), calls.end());
  return calls;
}

TEST(ConvFloor, TimesDeconvolutionsUnderTheNamesOfTheirLayer) {
  using Calls = std::vector<std::string>;
  for (const std::int64_t kernel : {2, 3}) {
    Deconv3dDesc d{.samples = 1, .in_channels = 32, .out_channels = 16, .in = Extent::cube(8), .out = Extent::cube(16)};
    d.kernel = Extent::cube(kernel);
    d.pad_lo = Extent::cube(kernel / 3);
    d.input_gradient = true;
    EXPECT_EQ(calls_of(d), (Calls{"backward_data", "backward_weights", "forward"}));
    d.input_gradient = false;
    EXPECT_EQ(calls_of(d), (Calls{"backward_weights", "forward"}));
    d.training = false;
    EXPECT_EQ(calls_of(d), (Calls{"forward"}));
  }
}

TEST(ConvFloor, LeavesTheMarginsOfDeconvolutionsOut) {
  Deconv3dDesc d{.samples = 1, .in_channels = 16, .out_channels = 16, .in = {10, 8, 9}, .out = Extent::cube(16)};
  d.kernel = Extent::cube(4);
  d.pad_lo = {3, 1, 1};  // a neighbour on either side in depth, above in width
  EXPECT_EQ(calls_of(d).size(), 3U);
}

TEST(ConvFloor, CountsNothingForNoSamples) {
  Conv3dDesc c = layer(8);
  c.samples = 0;
  EXPECT_EQ(cpu::conv_floor_seconds({c}, 3), 0);
}

}  // namespace
}  // namespace halograd
