#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/cast_conv3d.hpp"
#include "halograd/kernels/cpu/conv3d.hpp"
#include "halograd/kernels/deconv3d.hpp"
#include "halograd/tensor/window.hpp"
#include "kernels/bf16_conv_support.hpp"

namespace halograd::test {
namespace {

// Convolutions in bf16 that kernels or ranks do part by part.

/// The 3D U-Net's larger layers at 64³ and 128³ go by Winograd in float32, which is faster than bf16 instructions, with
/// scratch memory of at most a fifth of their activations.
TEST(Bf16Conv3d, LayersOfTheUnetAreCastInSmallPieces) {
  for (const std::int64_t width : {64, 128}) {
    for (const auto& [in, out] : {std::pair{32, 64}, std::pair{192, 64}, std::pair{64, 64}}) {
      EXPECT_TRUE(cpu::casts_in_small_pieces(cube(1, in, out, width))) << in << " " << out << " " << width;
    }
  }
  EXPECT_FALSE(cpu::casts_in_small_pieces(cube(1, 192, 64, 48)));  // four slices and two around are too much of 48
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

}  // namespace
}  // namespace halograd::test
