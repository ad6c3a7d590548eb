#include "halograd/kernels/conv3d.hpp"

#include "halograd/core/error.hpp"
#include "halograd/kernels/conv_floor.hpp"
#include "kernels/bf16_conv_support.hpp"

namespace halograd::test {
namespace {

TEST(Bf16Conv3d, MatchesTheReferenceOnRandomShapes) {
  Dice dice(1);
  const std::vector<std::int64_t> channels{1, 3, 4, 16, 20, 32};
  for (std::uint64_t i = 0; i < 60; ++i) {
    Conv3dDesc desc = random_conv(dice, dice.one_of(channels), dice.one_of(channels), 8);
    desc.direct = i % 3 == 0;
    expect_right(desc, 10 * i);
  }
}

TEST(Bf16Conv3d, MatchesTheReferenceBackwards) {
  Dice dice(2);
  const std::vector<std::int64_t> channels{1, 3, 16, 20, 32};
  for (std::uint64_t i = 0; i < 40; ++i) {
    Conv3dDesc desc = random_deconv(dice, dice.one_of(channels), dice.one_of(channels), 8);
    desc.direct = i % 3 == 0;
    expect_right(desc, 10 * i);
  }
}

TEST(Bf16Conv3d, MatchesTheReferenceOfCosmoflowsLayers) {
  Conv3dDesc first = cube(1, 4, 16, 12);
  first.input_gradient = false;
  expect_right(first, 1);
  expect_right(cube(2, 16, 32, 8), 2);
  expect_right(cube(1, 64, 128, 8, 2), 3);
  expect_right(cube(1, 128, 256, 4), 4);
  Conv3dDesc last = cube(1, 256, 256, 2);
  expect_right(last, 5);
  for (const std::string& name : make_conv3d(Backend::cpu, last)->implementations()) {
    EXPECT_TRUE(name.starts_with("cast:matrix:")) << name;
  }
  // No copy of the weights, nor of their gradient.
  EXPECT_LT(make_conv3d(Backend::cpu, last)->held_bytes(), 256 * 256 * 27 * 2);
}

TEST(Bf16Conv3d, MatchesTheReferenceByTilesOfWinograd) {
  Conv3dDesc desc = cube(2, 32, 48, 12);
  desc.in.d = 13;  // a margin below
  desc.pad_lo.d = 0;
  expect_right(desc, 1);
  desc = cube(1, 64, 64, 12);
  expect_right(desc, 2);
  const auto names = make_conv3d(Backend::cpu, desc)->implementations();
  for (const std::string& name : names) {
    EXPECT_TRUE(name.starts_with("cast:winograd:") || name.find("amx") != std::string::npos || !has_bf16()) << name;
  }
  desc.direct = true;
  expect_names(desc, "jit");
  expect_names(cube(1, 64, 64, 8), "jit");  // too few tiles
  expect_names(cube(1, 16, 32, 16), "jit");
}

TEST(Bf16Conv3d, MatchesTheReferenceWhereWindowsTile) {
  Dice dice(4);
  for (std::uint64_t i = 0; i < 12; ++i) {
    Conv3dDesc desc = cube(2, dice.one_of<std::int64_t>({1, 16, 33}), dice.one_of<std::int64_t>({3, 16, 40}), 1);
    for (int axis = 0; axis < 3; ++axis) {
      desc.kernel[axis] = i < 4 ? 2 : dice.between(1, 3);
      desc.out[axis] = dice.between(3, 7);
      desc.in[axis] = desc.out[axis] * desc.kernel[axis];
    }
    desc.stride = desc.kernel;
    desc.pad_lo = {};
    desc.backwards = i % 2 == 0;
    expect_right(desc, 10 * i);
    if (i < 4) expect_names(desc, "patches:");
  }
}

TEST(Bf16Conv3d, GivesTheSameBitsEveryTime) {
  for (const Conv3dDesc& desc : kinds()) {
    const Values given = random_case(desc, 1);
    const auto conv = make_conv3d(Backend::cpu, desc);
    const auto other = make_conv3d(Backend::cpu, desc);
    for (Conv3d* each : {conv.get(), other.get()}) each->set_weights(given.w.data());
    const Sums first = run(*other, desc, given);
    for (int i = 0; i < 4; ++i) {
      const Sums again = run(*conv, desc, given);
      EXPECT_EQ(again.y, first.y) << text(desc);
      EXPECT_EQ(again.dx, first.dx) << text(desc);
      EXPECT_EQ(again.dw, first.dw) << text(desc);
    }
  }
}

TEST(Bf16Conv3d, NewWeightsReplaceOldOnes) {
  for (const Conv3dDesc& desc : kinds()) {
    const auto conv = make_conv3d(Backend::cpu, desc);
    const Values old = random_case(desc, 7);
    conv->set_weights(old.w.data());
    const Sums before = run(*conv, desc, old);
    expect_right(*conv, desc, 1);
    conv->set_weights(old.w.data());
    EXPECT_EQ(run(*conv, desc, old).y, before.y) << text(desc);
    EXPECT_EQ(run(*conv, desc, old).dx, before.dx) << text(desc);
  }
}

TEST(Bf16Conv3d, AcceptsNoSamplesAndNoOutputs) {
  std::vector<float> dw(4 * 16 * 27, 5);
  make_conv3d(Backend::cpu, cube(0, 4, 16, 8))->backward_weights(nullptr, nullptr, dw.data());
  EXPECT_EQ(dw, std::vector<float>(dw.size()));
  Conv3dDesc desc = cube(1, 4, 16, 2);
  desc.out.d = 0;
  desc.in.d = 1;
  const auto conv = make_conv3d(Backend::cpu, desc);
  std::vector<Bf16> dx(4 * 4 + 1, Bf16(5));
  dw.assign(dw.size(), 5);
  conv->set_weights(dw.data());
  conv->forward(dx.data(), nullptr);
  conv->backward_data(nullptr, dx.data());
  conv->backward_weights(dx.data(), nullptr, dw.data());
  EXPECT_EQ(dw, std::vector<float>(dw.size()));
  std::vector<float> zeros(4 * 4 + 1);
  zeros.back() = 5;
  EXPECT_EQ(to_floats(dx), zeros);
}

TEST(Bf16Conv3d, RefusesThePrecisionOfGpus) {
  Conv3dDesc desc = cube(1, 4, 16, 8);
  desc.precision = Precision::tf32;
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(message([&] { make_conv3d(Backend::cpu, desc); }), "tf32 is a precision of GPUs; the CPU has f32 and bf16");
  EXPECT_EQ(message([&] { time_convolution(Device(), desc, 1); }),
            "tf32 is a precision of GPUs; the CPU has f32 and bf16");
}

TEST(Bf16Conv3d, RefusesVoxelsBehindTheLastWindow) {
  Conv3dDesc desc = cube(1, 4, 16, 8);
  desc.in.d = 11;
  EXPECT_THROW(make_conv3d(Backend::cpu, desc), UsageError);
}

TEST(Bf16Conv3d, IsTimedInItsPrecisionForTheFloorOfAStep) {
  for (const Conv3dDesc& desc : kinds()) {
    const auto calls = time_convolution(Device(), desc, 1);
    ASSERT_EQ(calls.size(), 3U) << text(desc);
    for (const ConvTiming& timing : calls) {
      EXPECT_GT(timing.seconds, 0) << timing.call;
      const std::string& name = timing.implementation;
      EXPECT_FALSE(name.starts_with("jit:") || name.starts_with("ref")) << name << ", " << text(desc);
    }
  }
}

}  // namespace
}  // namespace halograd::test
