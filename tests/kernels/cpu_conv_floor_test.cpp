#include "halograd/kernels/cpu/conv_floor.hpp"

#include <gtest/gtest.h>

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

TEST(ConvFloor, CountsNothingForNoSamples) {
  Conv3dDesc c = layer(8);
  c.samples = 0;
  EXPECT_EQ(cpu::conv_floor_seconds({c}, 3), 0);
}

}  // namespace
}  // namespace halograd
