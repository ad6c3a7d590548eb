#include "halograd/kernels/conv_floor.hpp"

#include "halograd/kernels/deconv3d.hpp"
#include "kernels/cuda/on_gpu.hpp"

namespace halograd::test {
namespace {

class CudaConvFloor : public OnGpu {
protected:
  /// Each call in a time in which a GPU can have done it, but no slower than a processor.
  void expect_likely(const Conv3dDesc& desc) const {
    const std::vector<ConvTiming> timings = time_convolution(device, desc, 3);
    ASSERT_EQ(timings.size(), 3U);
    for (const ConvTiming& timing : timings) {
      EXPECT_TRUE(timing.implementation.starts_with("cudnn engine")) << timing.implementation;
      const double rate = desc.forward_flops() / timing.seconds;
      EXPECT_LT(rate, 1e16) << timing.call << ": was anything done at all?";
      EXPECT_GT(rate, 1e9) << timing.call;
    }
  }
};

TEST_F(CudaConvFloor, TimesEachCallInEachPrecision) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    Conv3dDesc desc{.samples = 1,
                    .in_channels = 32,
                    .out_channels = 64,
                    .in = {66, 64, 64},
                    .out = Extent::cube(64),
                    .kernel = Extent::cube(3),
                    .pad_lo = {0, 1, 1}};  // margins in depth
    desc.precision = precision;
    desc.forward_parts = {{{1, 0, 0}, {63, 64, 64}}, {{0, 0, 0}, {1, 64, 64}}, {{63, 0, 0}, {64, 64, 64}}};
    expect_likely(desc);
    Deconv3dDesc up{
        .samples = 1, .in_channels = 64, .out_channels = 32, .in = Extent::cube(32), .out = Extent::cube(64)};
    up.precision = precision;
    expect_likely(transposed(up));
  }
}

}  // namespace
}  // namespace halograd::test
