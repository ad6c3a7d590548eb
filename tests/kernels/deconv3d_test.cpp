#include "halograd/kernels/deconv3d.hpp"

#include "halograd/tensor/window.hpp"
#include "kernels/slices.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

struct DeconvResult {
  std::vector<double> y, dx, dw;
};

/// Forward and both gradients by the definition: input i gives output i·s − p + k its product with w[k].
DeconvResult naive_deconv(const Deconv3dDesc& desc, const std::vector<float>& x, const std::vector<float>& w,
                          const std::vector<float>& dy) {
  DeconvResult result{std::vector<double>(dy.size()), std::vector<double>(x.size()), std::vector<double>(w.size())};
  const std::int64_t taps = desc.kernel.volume();
  for_each_value(
      desc.samples, Box::whole(desc.in), desc.in_channels, [&](std::int64_t n, const Index& i, std::int64_t ci) {
        const std::int64_t in_row = (n * desc.in.d + i.d) * desc.in.h + i.h;
        const auto xi = static_cast<std::size_t>((in_row * desc.in.w + i.w) * desc.in_channels + ci);
        for_each_value(
            1, Box::whole(desc.kernel), desc.out_channels, [&](std::int64_t, const Index& k, std::int64_t co) {
              Index o;
              for (int axis = 0; axis < 3; ++axis) {
                o[axis] = i[axis] * desc.stride[axis] - desc.pad_lo[axis] + k[axis];
              }
              if (!Box::whole(desc.out).contains(o)) return;
              const std::int64_t tap = (k.d * desc.kernel.h + k.h) * desc.kernel.w + k.w;
              const auto wi = static_cast<std::size_t>((ci * desc.out_channels + co) * taps + tap);
              const std::int64_t out_row = (n * desc.out.d + o.d) * desc.out.h + o.h;
              const auto yi = static_cast<std::size_t>((out_row * desc.out.w + o.w) * desc.out_channels + co);
              result.y[yi] += static_cast<double>(x[xi]) * static_cast<double>(w[wi]);
              result.dx[xi] += static_cast<double>(dy[yi]) * static_cast<double>(w[wi]);
              result.dw[wi] += static_cast<double>(dy[yi]) * static_cast<double>(x[xi]);
            });
      });
  return result;
}

std::string describe(const Deconv3dDesc& desc) {
  const auto triple = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  return fmt::format("n{} {}->{} in {} out {} kernel {} stride {} pad {}", desc.samples, desc.in_channels,
                     desc.out_channels, triple(desc.in), triple(desc.out), triple(desc.kernel), triple(desc.stride),
                     triple(desc.pad_lo));
}

void expect_right(Backend backend, const Deconv3dDesc& desc, std::uint64_t seed) {
  SCOPED_TRACE(describe(desc));
  const auto x = random_values(desc.samples * desc.in.volume() * desc.in_channels, seed);
  const auto dy = random_values(desc.samples * desc.out.volume() * desc.out_channels, seed + 1);
  const auto w = random_values(desc.out_channels * desc.in_channels * desc.kernel.volume(), seed + 2);
  const DeconvResult expected = naive_deconv(desc, x, w, dy);
  const auto deconv = make_deconv3d(backend, desc);
  deconv->set_weights(w.data());
  for (int run = 0; run < 2; ++run) {
    // Results are assigned: whatever the buffers held is gone, where no input reaches too.
    std::vector<float> y(dy.size(), 1e30F);
    std::vector<float> dx(x.size(), 1e30F);
    std::vector<float> dw(w.size(), 1e30F);
    deconv->forward(x.data(), y.data());
    EXPECT_LT(relative_l2(y, expected.y), 1e-5);
    if (!desc.training) continue;
    deconv->backward_weights(x.data(), dy.data(), dw.data());
    EXPECT_LT(relative_l2(dw, expected.dw), 1e-5);
    if (!desc.input_gradient) continue;
    deconv->backward_data(dy.data(), dx.data());
    EXPECT_LT(relative_l2(dx, expected.dx), 1e-5);
  }
}

/// A deconvolution on one rank, of a random window over `in` voxels at most.
Deconv3dDesc random_deconv(Dice& dice, std::int64_t in_channels, std::int64_t out_channels, std::int64_t largest) {
  Window window{.transposed = true};
  Deconv3dDesc desc{.samples = dice.between(1, 3), .in_channels = in_channels, .out_channels = out_channels};
  for (int i = 0; i < 3; ++i) {
    window.stride[i] = dice.between(1, 3);
    window.kernel[i] = dice.between(1, 4);
    window.padding[i] = dice.between(0, (window.kernel[i] - 1) / 2);
    window.output_padding[i] = dice.between(0, window.stride[i] - 1);
    desc.in[i] = dice.between(2, largest);
  }
  desc.kernel = window.kernel;
  desc.stride = window.stride;
  desc.pad_lo = window.padding;
  desc.out = window.output_extent(desc.in);
  return desc;
}

class Deconv3dTest : public BackendTest {};

TEST_P(Deconv3dTest, MatchesTheDefinitionOnRandomShapes) {
  Dice dice(1);
  const std::vector<std::int64_t> channels{1, 3, 4, 16, 20, 32};
  for (std::uint64_t i = 0; i < 30; ++i) {
    expect_right(GetParam(), random_deconv(dice, dice.one_of(channels), dice.one_of(channels), 6), 10 * i);
  }
}

TEST_P(Deconv3dTest, MatchesTheDefinitionWhereWindowsTile) {
  Dice dice(2);
  for (std::uint64_t i = 0; i < 10; ++i) {
    Deconv3dDesc desc{.samples = dice.between(1, 2),
                      .in_channels = dice.one_of<std::int64_t>({3, 16, 40}),
                      .out_channels = dice.one_of<std::int64_t>({1, 8, 33})};
    for (int axis = 0; axis < 3; ++axis) {
      desc.in[axis] = dice.between(3, 7);
      desc.kernel[axis] = i < 3 ? 2 : dice.between(1, 3);
      desc.out[axis] = desc.in[axis] * desc.kernel[axis];
    }
    desc.stride = desc.kernel;
    expect_right(GetParam(), desc, 10 * i);
  }
}

TEST_P(Deconv3dTest, MatchesTheDefinitionOverSeveralBlocksOfVoxels) {
  // More patches of 2³ × 96 numbers than fit one block, and not a multiple of it.
  Deconv3dDesc desc{
      .samples = 2, .in_channels = 5, .out_channels = 96, .in = {7, 8, 9}, .out = {14, 16, 18}, .pad_lo = {}};
  expect_right(GetParam(), desc, 1);
}

TEST_P(Deconv3dTest, LeavesZerosWhereNoInputReaches) {
  Deconv3dDesc desc{.samples = 1, .in_channels = 16, .out_channels = 16, .in = {4, 4, 4}, .pad_lo = {}};
  desc.kernel = Extent::cube(1);
  desc.out = {8, 8, 8};
  const auto x = random_values(64 * 16, 1);
  const auto w = random_values(16 * 16, 2);
  std::vector<float> y(512 * 16, 1e30F);
  const auto deconv = make_deconv3d(GetParam(), desc);
  deconv->set_weights(w.data());
  deconv->forward(x.data(), y.data());
  std::int64_t zeros = 0;
  for (const float value : y) zeros += value == 0 ? 1 : 0;
  EXPECT_EQ(zeros, (512 - 64) * 16);
  expect_right(GetParam(), desc, 3);
}

TEST_P(Deconv3dTest, InferenceRunsForwardAlone) {
  for (const std::int64_t kernel : {2, 3}) {
    Deconv3dDesc desc{.samples = 1, .in_channels = 16, .out_channels = 16, .in = {4, 4, 4}, .out = {8, 8, 8}};
    desc.kernel = Extent::cube(kernel);
    desc.pad_lo = Extent::cube(kernel / 3);
    const auto count = [&] { return make_deconv3d(GetParam(), desc)->implementations().size(); };
    if (GetParam() == Backend::cpu) {
      EXPECT_EQ(count(), 3U);
    }
    const std::int64_t training_bytes = make_deconv3d(GetParam(), desc)->held_bytes();
    desc.input_gradient = false;
    expect_right(GetParam(), desc, 1);
    if (GetParam() == Backend::cpu) {
      EXPECT_EQ(count(), 2U);
    }
    desc.training = false;
    expect_right(GetParam(), desc, 2);
    if (GetParam() == Backend::cpu) {
      EXPECT_EQ(count(), 1U);
    }
    EXPECT_LT(make_deconv3d(GetParam(), desc)->held_bytes(), training_bytes);
  }
}

TEST_P(Deconv3dTest, AcceptsNoSamplesAndNoInputVoxels) {
  Deconv3dDesc desc{.samples = 1, .in_channels = 2, .out_channels = 3, .in = {0, 4, 4}, .out = {1, 8, 8}};
  const auto deconv = make_deconv3d(GetParam(), desc);
  std::vector<float> dw(2 * 3 * 8, 5);
  std::vector<float> y(64 * 3, 5);
  deconv->set_weights(dw.data());
  deconv->forward(nullptr, y.data());
  deconv->backward_weights(nullptr, y.data(), dw.data());
  EXPECT_EQ(y, std::vector<float>(y.size()));
  EXPECT_EQ(dw, std::vector<float>(dw.size()));
  desc.samples = 0;
  dw.assign(dw.size(), 5);
  make_deconv3d(GetParam(), desc)->backward_weights(nullptr, nullptr, dw.data());
  EXPECT_EQ(dw, std::vector<float>(dw.size()));
}

/// What one part of a volume computes: its outputs, from the inputs that the window says it needs.
struct Part {
  Box in;
  Box out;
  Deconv3dDesc desc;
};

Part part_of(const Deconv3dDesc& whole, const Window& window, const Box& out) {
  Part part{window.input_needed(out, whole.in), out, whole};
  part.desc.in = part.in.extent();
  part.desc.out = out.extent();
  for (int i = 0; i < 3; ++i) {
    // Of the part's first input, the first output it reaches lies that far before the part's first output.
    part.desc.pad_lo[i] = out.lo[i] - (part.in.lo[i] * window.stride[i] - window.padding[i]);
  }
  return part;
}

/// Splits a deconvolution in depth and height, uneven and at odd places, and runs it part by part.
void expect_parts_to_join(Backend backend, const Deconv3dDesc& whole, const Window& window, std::uint64_t seed) {
  SCOPED_TRACE(describe(whole));
  const std::int64_t in_channels = whole.in_channels;
  Slice x = dense_slice(1, Box::whole(whole.in), in_channels);
  x.buffer = random_values(whole.in.volume() * in_channels, seed);
  Slice dy = dense_slice(1, Box::whole(whole.out), whole.out_channels);
  dy.buffer = random_values(whole.out.volume() * whole.out_channels, seed + 1);
  const auto w = random_values(in_channels * whole.out_channels * whole.kernel.volume(), seed + 2);
  const DeconvResult expected = naive_deconv(whole, x.buffer, w, dy.buffer);
  Slice y = dense_slice(1, Box::whole(whole.out), whole.out_channels, 1e30F);
  Slice dx = dense_slice(1, Box::whole(whole.in), in_channels);
  std::vector<double> dw(w.size());

  const std::vector<std::int64_t> d_cuts{0, whole.stride.d, 2 * whole.stride.d, whole.out.d};
  const std::vector<std::int64_t> h_cuts{0, 3, whole.out.h};
  for (std::size_t d = 0; d + 1 < d_cuts.size(); ++d) {
    for (std::size_t h = 0; h + 1 < h_cuts.size(); ++h) {
      const Part part =
          part_of(whole, window, {{d_cuts[d], h_cuts[h], 0}, {d_cuts[d + 1], h_cuts[h + 1], whole.out.w}});
      const auto deconv = make_deconv3d(backend, part.desc);
      deconv->set_weights(w.data());
      const std::vector<float> part_x = values_of(1, part.in, x);
      const std::vector<float> part_dy = values_of(1, part.out, dy);
      std::vector<float> part_y(part_dy.size());
      Slice part_dx = dense_slice(1, part.in, in_channels);
      std::vector<float> part_dw(w.size());
      deconv->forward(part_x.data(), part_y.data());
      deconv->backward_data(part_dy.data(), part_dx.data());
      deconv->backward_weights(part_x.data(), part_dy.data(), part_dw.data());
      y = with_values(1, part.out, y, part_y);
      for_each_value(1, part.in, in_channels,
                     [&](std::int64_t n, const Index& at, std::int64_t c) { dx.at(n, at, c) += part_dx.at(n, at, c); });
      for (std::size_t i = 0; i < dw.size(); ++i) dw[i] += static_cast<double>(part_dw[i]);
    }
  }
  EXPECT_LT(relative_l2(y.buffer, expected.y), 1e-5);
  EXPECT_LT(relative_l2(dx.buffer, expected.dx), 1e-5);
  EXPECT_LT(relative_l2(dw, expected.dw), 1e-5);
}

TEST_P(Deconv3dTest, PartsWithTheMarginsOfTheWindowJoinToTheWhole) {
  struct Shape {
    std::int64_t kernel, stride, padding, output_padding;
  };
  std::uint64_t seed = 1;
  for (const Shape& s : {Shape{2, 2, 0, 0}, Shape{3, 2, 1, 1}, Shape{3, 2, 1, 0}, Shape{4, 2, 1, 0}, Shape{3, 1, 1, 0},
                         Shape{5, 3, 1, 2}, Shape{3, 2, 0, 0}}) {
    const Window window{Extent::cube(s.kernel), Extent::cube(s.stride), Extent::cube(s.padding),
                        Extent::cube(s.output_padding), true};
    Deconv3dDesc desc{.samples = 1, .in_channels = 8, .out_channels = 16, .in = {6, 5, 4}};
    desc.out = window.output_extent(desc.in);
    desc.kernel = window.kernel;
    desc.stride = window.stride;
    desc.pad_lo = window.padding;
    expect_parts_to_join(GetParam(), desc, window, seed);
    seed += 10;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Deconv3dTest, both_backends(), backend_test_name);

TEST(CpuDeconv3d, UnetsDeconvolutionsRunFastImplementations) {
  struct Shape {
    std::int64_t channels, width, kernel;
  };
  for (const Shape& s : {Shape{128, 32, 2}, Shape{256, 16, 2}, Shape{512, 8, 2}, Shape{512, 4, 2}, Shape{64, 16, 3}}) {
    Deconv3dDesc desc{.samples = 1, .in_channels = s.channels, .out_channels = s.channels};
    desc.in = Extent::cube(s.width);
    desc.out = Extent::cube(2 * s.width);
    desc.kernel = Extent::cube(s.kernel);
    desc.pad_lo = Extent::cube(s.kernel / 3);
    for (const std::string& name : make_deconv3d(Backend::cpu, desc)->implementations()) {
      EXPECT_EQ(name.find("ref"), std::string::npos) << name << ", " << describe(desc);
    }
  }
}

TEST(CpuDeconv3d, GivesTheSameBitsEveryTime) {
  Deconv3dDesc desc{.samples = 2, .in_channels = 48, .out_channels = 40, .in = {6, 7, 8}, .out = {12, 14, 16}};
  const auto x = random_values(2 * desc.in.volume() * 48, 1);
  const auto dy = random_values(2 * desc.out.volume() * 40, 2);
  const auto w = random_values(48 * 40 * 8, 3);
  const auto deconv = make_deconv3d(Backend::cpu, desc);
  deconv->set_weights(w.data());
  std::vector<float> first;
  for (int run = 0; run < 5; ++run) {
    std::vector<float> y(dy.size());
    std::vector<float> dw(w.size());
    deconv->forward(x.data(), y.data());
    deconv->backward_weights(x.data(), dy.data(), dw.data());
    y.insert(y.end(), dw.begin(), dw.end());
    if (run == 0) first = y;
    EXPECT_EQ(y, first) << "run " << run;
  }
}

TEST(Deconv3dDesc, CountsMultiplyAddsTwiceAsItsConvolutionDoes) {
  const Deconv3dDesc desc{.samples = 2, .in_channels = 4, .out_channels = 16, .in = {4, 4, 4}, .out = {8, 8, 8}};
  EXPECT_EQ(desc.forward_flops(), 2.0 * 2 * 4 * 16 * 64 * 8);
  EXPECT_EQ(transposed(desc).forward_flops(), desc.forward_flops());
}

}  // namespace
}  // namespace halograd::test
