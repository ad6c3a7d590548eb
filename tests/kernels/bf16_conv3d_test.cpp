#include "halograd/core/error.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/cast_conv3d.hpp"
#include "halograd/kernels/cpu/conv3d.hpp"
#include "halograd/kernels/cpu/conv_floor.hpp"
#include "halograd/kernels/deconv3d.hpp"
#include "halograd/tensor/window.hpp"
#include "kernels/bf16_support.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

// Convolutions of bf16 activations, against sums in double of the same numbers. What is stored as bf16 is rounded once;
// beside that each result has the errors of float sums, relative to the sum of its products' sizes.
constexpr double float_sums = 1e-5;

struct Sums {
  std::vector<float> y, dx, dw;
};

struct Values {
  std::vector<float> x, w, dy;
  [[nodiscard]] Values sizes() const {
    Values result = *this;
    for (std::vector<float>* values : {&result.x, &result.w, &result.dy}) {
      for (float& value : *values) value = std::abs(value);
    }
    return result;
  }
};

Values random_case(const Conv3dDesc& desc, std::uint64_t seed) {
  return {bf16_values(desc.samples * desc.in.volume() * desc.in_channels, seed),
          bf16_values(desc.in_channels * desc.out_channels * desc.kernel.volume(), seed + 1),
          bf16_values(desc.samples * desc.out.volume() * desc.out_channels, seed + 2)};
}

Sums reference_sums(Conv3dDesc desc, const Values& given) {
  desc.precision = Precision::f32;
  const auto conv = make_conv3d(Backend::reference, desc);
  conv->set_weights(given.w.data());
  Sums sums{std::vector<float>(given.dy.size()), std::vector<float>(given.x.size()),
            std::vector<float>(given.w.size())};
  if (desc.calls_forward()) conv->forward(given.x.data(), sums.y.data());
  if (desc.calls_backward_data()) conv->backward_data(given.dy.data(), sums.dx.data());
  if (desc.calls_backward_weights()) conv->backward_weights(given.x.data(), given.dy.data(), sums.dw.data());
  return sums;
}

/// What a bf16 convolution assigns to buffers of other numbers.
Sums run(Conv3d& conv, const Conv3dDesc& desc, const Values& given) {
  const auto x = to_bf16(given.x);
  const auto dy = to_bf16(given.dy);
  std::vector<Bf16> y(dy.size(), Bf16(1e30F));
  std::vector<Bf16> dx(x.size(), Bf16(1e30F));
  std::vector<float> dw(given.w.size(), 1e30F);
  if (desc.calls_forward()) conv.forward(x.data(), y.data());
  if (desc.calls_backward_data()) conv.backward_data(dy.data(), dx.data());
  if (desc.calls_backward_weights()) conv.backward_weights(x.data(), dy.data(), dw.data());
  return {to_floats(y), to_floats(dx), dw};
}

/// `sizes`: sums of the products' sizes. Tiles of Winograd's mix neighbours' errors, so that the largest sum counts.
void expect_close(const std::vector<float>& got, const std::vector<float>& want, const std::vector<float>& sizes,
                  bool rounded, bool mixed, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  const double largest = want.empty() ? 0 : static_cast<double>(*std::max_element(sizes.begin(), sizes.end()));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto value = static_cast<double>(want[i]);
    const double bound =
        (rounded ? half_step(value) : 0) + float_sums * (mixed ? largest : static_cast<double>(sizes[i]));
    ASSERT_LE(std::abs(static_cast<double>(got[i]) - value), bound) << what << " element " << i;
  }
}

std::string text(const Conv3dDesc& desc) {
  const auto triple = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  return fmt::format("n{} {}->{} in {} out {} kernel {} stride {} pad {}{}{}", desc.samples, desc.in_channels,
                     desc.out_channels, triple(desc.in), triple(desc.out), triple(desc.kernel), triple(desc.stride),
                     triple(desc.pad_lo), desc.direct ? " direct" : "", desc.backwards ? " backwards" : "");
}

void expect_right(Conv3d& conv, const Conv3dDesc& desc, std::uint64_t seed) {
  SCOPED_TRACE(text(desc));
  bool mixed = false;
  for (const std::string& name : conv.implementations()) {
    EXPECT_EQ(name.find("ref"), std::string::npos) << name;
    mixed = mixed || name.find("winograd") != std::string::npos;
  }
  const Values given = random_case(desc, seed);
  const Sums want = reference_sums(desc, given);
  const Sums sizes = reference_sums(desc, given.sizes());
  conv.set_weights(given.w.data());
  for (int i = 0; i < 2; ++i) {
    const Sums got = run(conv, desc, given);
    if (desc.calls_forward()) expect_close(got.y, want.y, sizes.y, true, mixed, "y");
    if (desc.calls_backward_data()) expect_close(got.dx, want.dx, sizes.dx, true, mixed, "dx");
    if (desc.calls_backward_weights()) expect_close(got.dw, want.dw, sizes.dw, false, mixed, "dw");
  }
}

void expect_right(const Conv3dDesc& desc, std::uint64_t seed) {
  expect_right(*make_conv3d(Backend::cpu, desc), desc, seed);
}

Conv3dDesc cube(std::int64_t samples, std::int64_t in_channels, std::int64_t out_channels, std::int64_t width,
                std::int64_t stride = 1) {
  Conv3dDesc desc{.samples = samples, .in_channels = in_channels, .out_channels = out_channels, .pad_lo = {}};
  desc.in = Extent::cube(width);
  desc.out = Extent::cube((width - 1) / stride + 1);
  desc.kernel = Extent::cube(3);
  desc.stride = Extent::cube(stride);
  desc.pad_lo = Extent::cube(1);
  desc.precision = Precision::bf16;
  return desc;
}

/// Windows of any kind over up to `largest` voxels, each side with padding or a margin, some input voxels to spare.
Conv3dDesc random_conv(Dice& dice, std::int64_t in_channels, std::int64_t out_channels, std::int64_t largest) {
  Conv3dDesc desc = cube(dice.between(1, 3), in_channels, out_channels, 1);
  for (int i = 0; i < 3; ++i) {
    desc.kernel[i] = dice.one_of<std::int64_t>({1, 2, 3, 3, 5});
    desc.stride[i] = dice.one_of<std::int64_t>({1, 1, 2, 3});
    desc.pad_lo[i] = dice.between(0, desc.kernel[i] - 1);
    const std::int64_t pad_hi = dice.between(0, desc.kernel[i] - 1);
    desc.in[i] = dice.between(desc.kernel[i], std::max(desc.kernel[i], largest));
    desc.out[i] = (desc.in[i] + desc.pad_lo[i] + pad_hi - desc.kernel[i]) / desc.stride[i] + 1;
  }
  return desc;
}

/// A deconvolution as the convolution that it is backwards.
Conv3dDesc random_deconv(Dice& dice, std::int64_t in_channels, std::int64_t out_channels, std::int64_t largest) {
  Conv3dDesc desc = random_conv(dice, out_channels, in_channels, largest);
  desc.backwards = true;
  desc.training = dice.between(0, 3) > 0;
  desc.input_gradient = dice.between(0, 3) > 0;
  return desc;
}

/// Whether names show that the kernels for bf16 run here, and not those for f32 in their place.
bool has_bf16() {
  return !make_conv3d(Backend::cpu, cube(1, 16, 16, 8))->implementations().front().starts_with("no bf16 instructions");
}

/// Whether f32 convolutions, which stand in for those of bf16, have kernels of their own for all calls, so that direct
/// ones never turn into matrix products.
bool has_direct_f32() {
  Conv3dDesc desc = cube(1, 64, 32, 4);
  desc.precision = Precision::f32;
  desc.direct = true;
  return make_conv3d(Backend::cpu, desc)->implementations().front().starts_with("jit");
}

void expect_names(const Conv3dDesc& desc, const std::string& prefix) {
  const auto names = make_conv3d(Backend::cpu, desc)->implementations();
  EXPECT_EQ(names.size(), 3U);
  for (const std::string& name : names) {
    EXPECT_TRUE(name.starts_with(has_bf16() ? prefix : "no bf16 instructions, f32:")) << name;
  }
}

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

/// With dy other than 0 in a few voxels only, so that the sums are short.
TEST(Bf16Conv3d, AddsTheGradientsOfPiecesWhereScratchMemoryWouldBeLarge) {
  Conv3dDesc desc = cube(2, 4, 16, 96);
  desc.in.d = desc.out.d = 101;
  desc.input_gradient = false;
  Values given = random_case(desc, 1);
  const auto conv = make_conv3d(Backend::cpu, desc);
  conv->set_weights(given.w.data());
  std::vector<double> want(given.w.size());
  std::fill(given.dy.begin(), given.dy.end(), 0.0F);
  Dice dice(1);
  for (int i = 0; i < 3000; ++i) {
    const Index at{dice.between(0, 100), dice.between(0, 95), dice.between(0, 95)};
    const std::int64_t n = dice.between(0, 1);
    const std::int64_t o = dice.between(0, 15);
    const auto voxel = ((n * desc.out.d + at.d) * desc.out.h + at.h) * desc.out.w + at.w;
    float& dy = given.dy[static_cast<std::size_t>(voxel * 16 + o)];
    if (dy != 0) continue;
    dy = static_cast<float>(dice.between(1, 64)) / 64;
    for (std::int64_t tap = 0; tap < 27; ++tap) {
      const Index from{at.d + tap / 9 - 1, at.h + tap / 3 % 3 - 1, at.w + tap % 3 - 1};
      if (!Box::whole(desc.in).contains(from)) continue;
      const auto x = ((n * desc.in.d + from.d) * desc.in.h + from.h) * desc.in.w + from.w;
      for (std::int64_t c = 0; c < 4; ++c) {
        want[static_cast<std::size_t>((o * 4 + c) * 27 + tap)] +=
            static_cast<double>(dy) * static_cast<double>(given.x[static_cast<std::size_t>(x * 4 + c)]);
      }
    }
  }
  EXPECT_LT(relative_l2(run(*conv, desc, given).dw, want), float_sums);
  // Both activations take 71 MB, which oneDNN would hold once a thread.
  EXPECT_LT(conv->held_bytes(), (33 << 20) * std::int64_t{thread_count()});
}

TEST(Bf16Conv3d, CastsInPiecesWhateverTheyAre) {
  Dice dice(5);
  int cut = 0;
  int compared = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    Conv3dDesc desc = i % 3 == 0 ? random_deconv(dice, dice.between(1, 5), dice.between(1, 5), 8)
                                 : random_conv(dice, dice.between(1, 5), dice.between(1, 5), 8);
    desc.direct = i % 4 == 0;
    const int axis = static_cast<int>(dice.between(0, 1));
    desc.out[axis] = dice.between(8, 24);
    desc.in[axis] = std::max<std::int64_t>(
        1, (desc.out[axis] - 1) * desc.stride[axis] + desc.kernel[axis] - desc.pad_lo[axis] - dice.between(0, 1));
    const std::int64_t bytes = dice.one_of<std::int64_t>({0, 1000, 10000});
    const auto conv = cpu::make_cast_conv3d(desc, "cast:", cpu::make_conv3d, bytes);
    const auto whole = cpu::make_cast_conv3d(desc, "cast:", cpu::make_conv3d, 1 << 30);
    const auto names = conv->implementations();
    EXPECT_EQ(names.size(), whole->implementations().size()) << text(desc);
    cut += conv->held_bytes() < whole->held_bytes() ? 1 : 0;
    expect_right(*conv, desc, 10 * i);
    const auto is_direct = [](const std::string& name) { return name.starts_with("cast:jit"); };
    if (!desc.direct || !std::all_of(names.begin(), names.end(), is_direct) || whole->implementations() != names)
      continue;
    ++compared;
    const Values given = random_case(desc, i);
    for (Conv3d* each : {conv.get(), whole.get()}) each->set_weights(given.w.data());
    EXPECT_EQ(run(*conv, desc, given).y, run(*whole, desc, given).y) << text(desc);
    EXPECT_EQ(run(*conv, desc, given).dx, run(*whole, desc, given).dx) << text(desc);
  }
  EXPECT_GT(cut, 30);
  EXPECT_GT(compared, has_direct_f32() ? 3 : -1);
}

/// One of each kind.
std::vector<Conv3dDesc> kinds() {
  Conv3dDesc tiling = cube(2, 16, 24, 10);
  tiling.kernel = tiling.stride = Extent::cube(2);
  tiling.out = Extent::cube(5);
  tiling.pad_lo = {};
  return {cube(2, 16, 24, 7), cube(1, 32, 64, 12), cube(1, 64, 32, 2), cube(1, 20, 3, 9, 2), tiling};
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

/// A volume cut in depth, each part with one margin plane, put together again.
void expect_the_same_bits_cut(std::int64_t in, std::int64_t out, const Extent& extent, std::int64_t cut) {
  Conv3dDesc whole = cube(1, in, out, 1);
  whole.in = whole.out = extent;
  whole.direct = true;
  Conv3dDesc lower = whole;
  lower.in.d = cut + 1;
  lower.out.d = cut;
  Conv3dDesc upper = whole;
  upper.in.d = extent.d - cut + 1;
  upper.out.d = extent.d - cut;
  upper.pad_lo.d = 0;
  const auto x = to_bf16(random_values(extent.volume() * in, 1));
  const auto w = random_values(out * in * 27, 2);
  std::vector<Bf16> y(static_cast<std::size_t>(extent.volume() * out));
  std::vector<Bf16> parts(y.size());
  const auto forward = [&](const Conv3dDesc& desc, std::int64_t first_in, std::int64_t first_out, Bf16* to) {
    const auto conv = make_conv3d(Backend::cpu, desc);
    conv->set_weights(w.data());
    conv->forward(x.data() + first_in * extent.h * extent.w * in, to + first_out * extent.h * extent.w * out);
  };
  forward(whole, 0, 0, y.data());
  forward(lower, 0, 0, parts.data());
  forward(upper, cut - 1, cut, parts.data());
  EXPECT_EQ(to_floats(y), to_floats(parts)) << in << " to " << out << " channels";
}

TEST(Bf16Conv3d, DirectForwardBitsDoNotDependOnTheCut) {
  if (!has_bf16() && !has_direct_f32()) GTEST_SKIP() << "nor do those of f32 keep to one kernel here";
  expect_the_same_bits_cut(5, 9, {7, 6, 5}, 3);
  expect_the_same_bits_cut(256, 32, {4, 4, 4}, 2);
  expect_the_same_bits_cut(128, 32, {5, 16, 16}, 2);
  expect_the_same_bits_cut(64, 32, {4, 2, 2}, 2);
  expect_the_same_bits_cut(64, 64, {17, 12, 12}, 6);
}

/// Likewise a deconvolution, each part with the input planes that reach into its outputs.
void expect_the_same_bits_cut(const Window& window, std::int64_t in, std::int64_t out, const Extent& extent,
                              std::int64_t cut) {
  Deconv3dDesc whole{.samples = 1, .in_channels = in, .out_channels = out, .in = extent};
  whole.out = window.output_extent(extent);
  whole.kernel = window.kernel;
  whole.stride = window.stride;
  whole.pad_lo = window.padding;
  whole.precision = Precision::bf16;
  whole.direct = true;
  const auto x = to_bf16(random_values(extent.volume() * in, 1));
  const auto w = random_values(out * in * window.kernel.volume(), 2);
  const auto forward = [&](std::int64_t lo, std::int64_t hi, std::vector<Bf16>& y) {
    Box part = Box::whole(whole.out);
    part.lo.d = lo;
    part.hi.d = hi;
    const Box from = window.input_needed(part, whole.in);
    Deconv3dDesc desc = whole;
    desc.in = from.extent();
    desc.out = part.extent();
    desc.pad_lo.d = lo - (from.lo.d * window.stride.d - window.padding.d);
    const auto deconv = make_deconv3d(Backend::cpu, desc);
    deconv->set_weights(w.data());
    deconv->forward(x.data() + from.lo.d * extent.h * extent.w * in, y.data() + lo * whole.out.h * whole.out.w * out);
  };
  std::vector<Bf16> y(static_cast<std::size_t>(whole.out.volume() * out));
  std::vector<Bf16> parts(y.size());
  forward(0, whole.out.d, y);
  forward(0, cut, parts);
  forward(cut, whole.out.d, parts);
  EXPECT_EQ(to_floats(y), to_floats(parts)) << in << " to " << out << " channels, kernel " << window.kernel.d;
}

TEST(Bf16Deconv3d, DirectForwardBitsDoNotDependOnTheCut) {
  const Window tiling{Extent::cube(2), Extent::cube(2), {}, {}, true};
  expect_the_same_bits_cut(tiling, 64, 48, {8, 9, 10}, 6);
  expect_the_same_bits_cut(tiling, 128, 96, {16, 12, 12}, 10);
  expect_the_same_bits_cut(tiling, 256, 16, {4, 2, 2}, 4);
  const Window overlapping{Extent::cube(3), Extent::cube(2), Extent::cube(1), Extent::cube(1), true};
  expect_the_same_bits_cut(overlapping, 64, 32, {6, 8, 8}, 5);
  expect_the_same_bits_cut(overlapping, 16, 16, {9, 5, 6}, 8);
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
  EXPECT_EQ(message([&] { cpu::time_convolution(desc, 1); }), "tf32 is a precision of GPUs; the CPU has f32 and bf16");
}

TEST(Bf16Conv3d, RefusesVoxelsBehindTheLastWindow) {
  Conv3dDesc desc = cube(1, 4, 16, 8);
  desc.in.d = 11;
  EXPECT_THROW(make_conv3d(Backend::cpu, desc), UsageError);
}

TEST(Bf16Conv3d, IsTimedInItsPrecisionForTheFloorOfAStep) {
  for (const Conv3dDesc& desc : kinds()) {
    const auto calls = cpu::time_convolution(desc, 1);
    ASSERT_EQ(calls.size(), 3U) << text(desc);
    for (const cpu::ConvTiming& timing : calls) {
      EXPECT_GT(timing.seconds, 0) << timing.call;
      const std::string& name = timing.implementation;
      const bool in_f32 = name.starts_with("jit:") || name.starts_with("brgconv:avx512_core ");
      EXPECT_FALSE(in_f32 || name.find("ref") != std::string::npos) << name << ", " << text(desc);
    }
  }
}

}  // namespace
}  // namespace halograd::test
