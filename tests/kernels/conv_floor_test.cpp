#include "halograd/kernels/conv_floor.hpp"

#include "halograd/kernels/cuda/conv3d.hpp"
#include "halograd/kernels/cuda/conv_geometry.hpp"
#include "halograd/kernels/deconv3d.hpp"
#include "support/recording_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace halograd {
namespace {

using testing::CallKind;
using testing::QueueCall;
using testing::RecordingDevice;

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

Deconv3dDesc upward(std::int64_t kernel) {
  Deconv3dDesc d{.samples = 1, .in_channels = 32, .out_channels = 16, .in = Extent::cube(8), .out = Extent::cube(16)};
  d.kernel = Extent::cube(kernel);
  d.pad_lo = Extent::cube(kernel / 3);
  return d;
}

/// On the processor, and with its kernels on a device that is asked for work as a GPU is.
class ConvFloor : public ::testing::TestWithParam<bool> {
protected:
  [[nodiscard]] std::vector<std::string> calls_of(const Conv3dDesc& desc) const {
    std::vector<std::string> calls;
    for (const ConvTiming& timing : time_convolution(device, desc, 1)) {
      EXPECT_GT(timing.seconds, 0);
      EXPECT_FALSE(timing.implementation.empty());
      EXPECT_EQ(timing.implementation.find("ref"), std::string::npos) << timing.implementation;
      calls.push_back(timing.call);
    }
    std::sort(calls.begin(), calls.end());
    return calls;
  }

  Device device = GetParam() ? RecordingDevice().device() : Device();
};

INSTANTIATE_TEST_SUITE_P(, ConvFloor, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "StandIn" : "Processor"; });

using Calls = std::vector<std::string>;

TEST_P(ConvFloor, TimesEachCallThatAStepMakes) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Conv3dDesc c = layer(8);
    c.precision = precision;
    EXPECT_EQ(calls_of(c), (Calls{"backward_data", "backward_weights", "forward"}));
    c.input_gradient = false;
    EXPECT_EQ(calls_of(c), (Calls{"backward_weights", "forward"}));
    c.training = false;
    EXPECT_EQ(calls_of(c), (Calls{"forward"}));
  }
}

TEST_P(ConvFloor, TimesDeconvolutionsUnderTheNamesOfTheirLayer) {
  for (const std::int64_t kernel : {2, 3}) {
    Deconv3dDesc d = upward(kernel);
    EXPECT_EQ(calls_of(transposed(d)), (Calls{"backward_data", "backward_weights", "forward"}));
    d.input_gradient = false;
    EXPECT_EQ(calls_of(transposed(d)), (Calls{"backward_weights", "forward"}));
    d.training = false;
    EXPECT_EQ(calls_of(transposed(d)), (Calls{"forward"}));
  }
}

TEST_P(ConvFloor, TakesParts) {
  Conv3dDesc c = layer(8);
  c.in.d = 9;
  c.forward_parts = {{{0, 0, 0}, {7, 8, 8}}, {{7, 0, 0}, {8, 8, 8}}};  // which the processor's kernels refuse
  EXPECT_EQ(calls_of(c).size(), 3U);
}

TEST_P(ConvFloor, CountsNothingForNoSamples) {
  Conv3dDesc c = layer(8);
  c.samples = 0;
  EXPECT_EQ(conv_floor_seconds(device, {c}, 3), 0);
  EXPECT_EQ(conv_floor_bytes(device, {c}), 0);
}

TEST_P(ConvFloor, SumsAllCallsOfAll) {
  const Conv3dDesc c = layer(12);
  double forward = 0, all = 0;
  for (const ConvTiming& timing : time_convolution(device, c, 3)) {
    if (timing.call == "forward") forward = timing.seconds;
    all += timing.seconds;
  }
  const double four = conv_floor_seconds(device, {c, c, c, c}, 3);
  EXPECT_GT(four, 1.3 * all);  // whatever else the machine does meanwhile
  EXPECT_LT(four, 40 * all);
  EXPECT_LT(forward, all);
}

TEST(ConvFloorShapes, LeaveMarginsOut) {
  Conv3dDesc inner = layer(8);  // both neighbours' planes in the buffer
  inner.in.d = 10;
  inner.pad_lo.d = 0;
  inner.forward_parts = {{{1, 0, 0}, {7, 8, 8}}};
  const Conv3dDesc alone = without_margins(inner);
  EXPECT_EQ(alone.in, Extent::cube(8));
  EXPECT_EQ(alone.out, Extent::cube(8));
  EXPECT_EQ(alone.pad_lo, Extent::cube(1));
  EXPECT_TRUE(alone.forward_parts.empty());

  Conv3dDesc strided = layer(8);  // one plane below an even cut
  strided.stride = Extent::cube(2);
  strided.out = Extent::cube(4);
  strided.in.d = 9;
  strided.pad_lo.d = 0;
  EXPECT_EQ(without_margins(strided).in, Extent::cube(8));
  EXPECT_EQ(without_margins(strided).pad_lo, Extent::cube(1));

  Deconv3dDesc d{.samples = 1, .in_channels = 16, .out_channels = 16, .in = {10, 8, 9}, .out = Extent::cube(16)};
  d.kernel = Extent::cube(4);
  d.pad_lo = {3, 1, 1};  // a neighbour on either side in depth, above in width
  EXPECT_EQ(without_margins(transposed(d)).in, Extent::cube(16));
  EXPECT_EQ(without_margins(transposed(d)).out, Extent::cube(8));
  EXPECT_EQ(without_margins(transposed(d)).pad_lo, Extent::cube(1));

  for (const Conv3dDesc& desc :
       {inner, strided, transposed(d), transposed(upward(2)), transposed(upward(3)), layer(1)}) {
    EXPECT_NO_THROW(cuda::whole_part(without_margins(desc))) << "cuDNN is given no window without a voxel";
    EXPECT_GT(conv_floor_seconds(Device(), {desc}, 1), 0);
  }
}

// So that cuDNN's algorithms, which are recorded by their shapes, are those of the step.
TEST(ConvFloorShapes, AreOneRanksOwnWhereThatIsAlone) {
  std::vector<Conv3dDesc> layers{transposed(upward(2)), transposed(upward(3))};
  for (const std::int64_t kernel : {1, 3, 5}) {
    for (const std::int64_t stride : {1, 2}) {
      Conv3dDesc c = layer(8);
      c.kernel = Extent::cube(kernel);
      c.pad_lo = Extent::cube((kernel - 1) / 2);
      c.stride = Extent::cube(stride);
      c.out = Extent::cube(8 / stride);
      layers.push_back(c);
    }
  }
  for (const Conv3dDesc& c : layers) {
    EXPECT_EQ(without_margins(c).in, c.in) << c.kernel.d << ", " << c.stride.d;
    EXPECT_EQ(without_margins(c).out, c.out) << c.kernel.d << ", " << c.stride.d;
    EXPECT_EQ(without_margins(c).pad_lo, c.pad_lo) << c.kernel.d << ", " << c.stride.d;
  }
}

TEST(ConvFloorMemory, IsTheLargestConvolutions) {
  const Conv3dDesc small = layer(8), large = layer(16);
  const double large_bytes = 4.0 * (16 * 16 * 16 * (16 + 32) + 3 * 27 * 16 * 32);
  EXPECT_EQ(conv_floor_bytes(Device(), {small, large, small}), large_bytes);
  const RecordingDevice gpu({.backend = Backend::cuda});
  EXPECT_EQ(conv_floor_bytes(gpu.device(), {small, large}), large_bytes + 1024.0 * 1024 * 1024) << "cuDNN's workspace";
}

std::vector<CallKind> kinds_of(const RecordingDevice& device) {
  std::vector<CallKind> kinds;
  for (const QueueCall& call : device.calls()) kinds.push_back(call.kind);
  return kinds;
}

TEST(ConvFloorCalls, AreLaunchedFromARecordingWhereTheDeviceCan) {
  const RecordingDevice device({.can_record = true});
  EXPECT_EQ(time_convolution(device.device(), layer(8), 4).size(), 3U);
  const std::vector<CallKind> kinds = kinds_of(device);
  EXPECT_EQ(std::ranges::count(kinds, CallKind::begin_recording), 3);
  EXPECT_EQ(std::ranges::count(kinds, CallKind::end_recording), 3);
  EXPECT_EQ(std::ranges::count(kinds, CallKind::launch), 3 * (1 + 4));
  const auto buffers_done = std::ranges::find(kinds, CallKind::begin_recording);
  EXPECT_EQ(std::find(buffers_done, kinds.end(), CallKind::copy), kinds.end()) << "buffers are filled before";
}

TEST(ConvFloorCalls, ReadMemoryOfTheDeviceThatIsFilledToItsEnd) {
  const RecordingDevice device;
  const Conv3dDesc c = layer(20);
  EXPECT_EQ(time_convolution(device.device(), c, 1).size(), 3U);
  std::int64_t bytes = 0;
  for (const QueueCall& call : device.calls()) {
    if (call.kind == CallKind::copy) bytes += call.bytes;
  }
  EXPECT_EQ(bytes, 4 * (20 * 20 * 20 * (16 + 32) + 27 * 16 * 32));
}

}  // namespace
}  // namespace halograd
