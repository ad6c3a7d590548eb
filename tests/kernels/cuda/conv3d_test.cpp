#include "halograd/kernels/cuda/conv3d.hpp"

#include "halograd/device/algorithm_record.hpp"
#include "halograd/kernels/cuda/conv_pass.hpp"
#include "halograd/kernels/reference/conv3d.hpp"
#include "kernels/cuda/on_gpu.hpp"

#include <algorithm>

namespace halograd::test {
namespace {

constexpr Precision all_precisions[] = {Precision::f32, Precision::tf32, Precision::bf16};

/// Relative L2 that rounding explains: of f32 sums; of factors with 10 bits behind the point, each off by up to 2⁻¹¹;
/// of results with 7 bits, off by up to 2⁻⁸ (the inputs are bf16 on both sides).
double bound(Precision precision) {
  return precision == Precision::f32 ? 1e-5 : precision == Precision::tf32 ? 1e-3 : 3e-3;
}

struct Results {
  std::vector<float> y, dx, dw;
};

class CudaConv3d : public OnGpu {
protected:
  void make_inputs(const Conv3dDesc& desc, std::uint64_t seed) {
    const DType type = activation_type(desc.precision);
    x = rounded(random_values(desc.samples * desc.in.volume() * desc.in_channels, seed), type);
    dy = rounded(random_values(desc.samples * desc.out.volume() * desc.out_channels, seed + 1), type);
    w = rounded(random_values(desc.out_channels * desc.in_channels * desc.kernel.volume(), seed + 2), type);
  }

  [[nodiscard]] Results expected(const Conv3dDesc& desc) const {
    Results results{std::vector<float>(dy.size()), std::vector<float>(x.size()), std::vector<float>(w.size())};
    const auto conv = reference::make_conv3d(desc);
    conv->set_weights(w.data());
    conv->forward(x.data(), results.y.data());
    conv->backward_data(dy.data(), results.dx.data());
    conv->backward_weights(x.data(), dy.data(), results.dw.data());
    return results;
  }

  /// On buffers that held other numbers before.
  [[nodiscard]] Results computed(Conv3d& conv, DType type) const {
    const DeviceMemory on_x = upload(x, type), on_dy = upload(dy, type), on_w = upload(w);
    const DeviceMemory on_y = upload(std::vector<float>(dy.size(), 1e30F), type);
    const DeviceMemory on_dx = upload(std::vector<float>(x.size(), 1e30F), type);
    const DeviceMemory on_dw = upload(std::vector<float>(w.size(), 1e30F));
    conv.set_weights(on_w.floats());
    conv.forward(on_x.data(), on_y.data());
    conv.backward_data(on_dy.data(), on_dx.data());
    conv.backward_weights(on_x.data(), on_dy.data(), on_dw.floats());
    return {download(on_y, dy.size(), type), download(on_dx, x.size(), type), download(on_dw, w.size())};
  }

  void expect_right(const Conv3dDesc& desc, std::uint64_t seed) {
    make_inputs(desc, seed);
    const auto conv = cuda::make_conv3d(queue, desc);
    const Results got = computed(*conv, activation_type(desc.precision));
    const Results want = expected(desc);
    const std::string name = describe(cuda::ConvPass::forward, cuda::whole_part(desc));
    EXPECT_LT(relative_l2(got.y, want.y), bound(desc.precision)) << name;
    EXPECT_LT(relative_l2(got.dx, want.dx), bound(desc.precision)) << name;
    EXPECT_LT(relative_l2(got.dw, want.dw), bound(desc.precision)) << name;
    EXPECT_EQ(conv->implementations().size(), 3U);
    EXPECT_GT(conv->held_bytes(), 0);
  }

  std::vector<float> x, dy, w;
};

/// With zeros, neighbours' voxels and voxels that no window touches on any side.
Conv3dDesc random_conv(Dice& dice) {
  const std::vector<std::int64_t> channels{1, 3, 4, 16, 20, 32};
  Conv3dDesc desc;
  desc.samples = dice.between(1, 3);
  desc.in_channels = dice.one_of(channels);
  desc.out_channels = dice.one_of(channels);
  for (int i = 0; i < 3; ++i) {
    desc.kernel[i] = dice.one_of<std::int64_t>({1, 2, 3, 3, 5});
    desc.stride[i] = dice.between(1, 2);
    desc.pad_lo[i] = dice.between(-1, desc.kernel[i] - 1);
    const std::int64_t pad_hi = dice.between(-1, desc.kernel[i] - 1);
    desc.in[i] = dice.between(desc.kernel[i] + 2, desc.kernel[i] + 8);
    desc.out[i] = (desc.in[i] + desc.pad_lo[i] + pad_hi - desc.kernel[i]) / desc.stride[i] + 1;
  }
  return desc;
}

TEST_F(CudaConv3d, MatchesTheReferenceOnRandomShapes) {
  Dice dice(21);
  for (std::uint64_t i = 0; i < 20; ++i) {
    Conv3dDesc desc = random_conv(dice);
    for (const Precision precision : all_precisions) {
      desc.precision = precision;
      desc.direct = i % 3 == 0;
      expect_right(desc, 10 * i);
    }
  }
}

Conv3dDesc layer(Precision precision) {
  Conv3dDesc desc{
      .samples = 2, .in_channels = 16, .out_channels = 32, .in = {17, 16, 16}, .out = {16, 16, 16}, .pad_lo = {}};
  desc.kernel = Extent::cube(3);
  desc.pad_lo = Extent::cube(1);
  desc.precision = precision;
  return desc;
}

TEST_F(CudaConv3d, BoxesOfOutputsAreTheWhole) {
  for (const Precision precision : all_precisions) {
    Conv3dDesc desc = layer(precision);
    const Extent& out = desc.out;
    desc.forward_parts = {{{1, 1, 1}, {out.d - 1, out.h - 1, out.w}},     {{0, 0, 0}, {1, out.h, out.w}},
                          {{out.d - 1, 0, 0}, {out.d, out.h, out.w}},     {{1, 0, 0}, {out.d - 1, 1, out.w}},
                          {{1, out.h - 1, 0}, {out.d - 1, out.h, out.w}}, {{1, 1, 0}, {out.d - 1, out.h - 1, 1}}};
    expect_right(desc, 7);
  }
}

TEST_F(CudaConv3d, PiecesAreTheWhole) {
  for (const Precision precision : all_precisions) {
    const Conv3dDesc desc = layer(precision);
    // The record asks for the same engines in five pieces: of one sample, and of its depth.
    static_cast<void>(cuda::make_conv3d(queue, desc));
    AlgorithmRecord& record = algorithm_record();
    const std::string text = record.text();
    for (std::size_t line = text.find('\n') + 1; line < text.size(); line = text.find('\n', line) + 1) {
      const std::string key = text.substr(line, text.find('\t', line) - line);
      Algorithm algorithm = record.find(key).value();
      algorithm.pieces = 5;
      record.set(key, algorithm);
    }
    for (const std::string& name : cuda::make_conv3d(queue, desc)->implementations()) {
      EXPECT_NE(name.find("in 6 pieces"), std::string::npos) << name;
    }
    expect_right(desc, 5);
  }
}

TEST_F(CudaConv3d, GivesTheSameBitsTwiceAndFromTheRecord) {
  for (const Precision precision : all_precisions) {
    Conv3dDesc desc = layer(precision);
    desc.out_channels = 48;
    make_inputs(desc, 9);
    const auto first = cuda::make_conv3d(queue, desc);
    const auto second = cuda::make_conv3d(queue, desc);
    EXPECT_EQ(first->implementations(), second->implementations());
    const Results once = computed(*first, activation_type(precision));
    const Results twice = computed(*first, activation_type(precision));
    const Results replayed = computed(*second, activation_type(precision));
    EXPECT_EQ(once.y, twice.y);
    EXPECT_EQ(once.dx, twice.dx);
    EXPECT_EQ(once.dw, twice.dw);
    EXPECT_EQ(once.y, replayed.y);
    EXPECT_EQ(once.dx, replayed.dx);
    EXPECT_EQ(once.dw, replayed.dw);
  }
}

TEST_F(CudaConv3d, DirectForwardBitsDoNotDependOnTheCut) {
  for (const Precision precision : all_precisions) {
    Conv3dDesc whole = layer(precision);
    whole.samples = 1;
    whole.in = whole.out = {8, 12, 12};
    whole.direct = true;
    const DType type = activation_type(precision);
    make_inputs(whole, 3);
    Conv3dDesc lower = whole;
    lower.in.d = 4;
    lower.out.d = 3;
    Conv3dDesc upper = whole;
    upper.in.d = 6;
    upper.out.d = 5;
    upper.pad_lo.d = 0;
    const DeviceMemory on_x = upload(x, type), on_w = upload(w);
    const DeviceMemory on_y = upload(dy, type), on_parts = upload(dy, type);
    const auto run = [&](const Conv3dDesc& desc, std::int64_t first_in, std::int64_t first_out, const DeviceMemory& y) {
      const std::int64_t plane = 12 * 12 * dtype_size(type);
      const auto conv = cuda::make_conv3d(queue, desc);
      conv->set_weights(on_w.floats());
      conv->forward(on_x.data() + first_in * plane * 16, y.data() + first_out * plane * 32);
      queue.synchronize();
    };
    run(whole, 0, 0, on_y);
    run(lower, 0, 0, on_parts);
    run(upper, 2, 3, on_parts);
    EXPECT_EQ(download(on_y, dy.size(), type), download(on_parts, dy.size(), type)) << precision_name(precision);
  }
}

TEST_F(CudaConv3d, NoSamplesGiveNoGradient) {
  Conv3dDesc desc = layer(Precision::f32);
  desc.samples = 0;
  make_inputs(desc, 1);
  const auto conv = cuda::make_conv3d(queue, desc);
  const Results got = computed(*conv, DType::f32);
  EXPECT_EQ(got.dw, std::vector<float>(w.size(), 0.0F));
  EXPECT_EQ(conv->held_bytes(), 0);
}

TEST_F(CudaConv3d, IsRecordedIntoAGraph) {
  const Conv3dDesc desc = layer(Precision::tf32);
  make_inputs(desc, 7);
  const auto conv = cuda::make_conv3d(queue, desc);
  const Results want = computed(*conv, DType::f32);
  const DeviceMemory on_x = upload(x), on_dy = upload(dy);
  const DeviceMemory on_y = upload(dy), on_dx = upload(x), on_dw = upload(w);
  queue.begin_recording();
  conv->forward(on_x.data(), on_y.data());
  conv->backward_data(on_dy.data(), on_dx.data());
  conv->backward_weights(on_x.data(), on_dy.data(), on_dw.floats());
  const Graph graph = queue.end_recording();
  queue.launch(graph);
  EXPECT_EQ(download(on_y, dy.size()), want.y);
  EXPECT_EQ(download(on_dx, x.size()), want.dx);
  EXPECT_EQ(download(on_dw, w.size()), want.dw);
}

}  // namespace
}  // namespace halograd::test
