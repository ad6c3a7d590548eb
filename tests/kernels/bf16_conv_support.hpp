#pragma once

#include "halograd/kernels/conv3d.hpp"
#include "kernels/bf16_support.hpp"

#include <fmt/format.h>

namespace halograd::test {

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

inline Values random_case(const Conv3dDesc& desc, std::uint64_t seed) {
  return {bf16_values(desc.samples * desc.in.volume() * desc.in_channels, seed),
          bf16_values(desc.in_channels * desc.out_channels * desc.kernel.volume(), seed + 1),
          bf16_values(desc.samples * desc.out.volume() * desc.out_channels, seed + 2)};
}

inline Sums reference_sums(Conv3dDesc desc, const Values& given) {
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
inline Sums run(Conv3d& conv, const Conv3dDesc& desc, const Values& given) {
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
inline void expect_close(const std::vector<float>& got, const std::vector<float>& want, const std::vector<float>& sizes,
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

inline std::string text(const Conv3dDesc& desc) {
  const auto triple = [](const Extent& e) { return fmt::format("{}x{}x{}", e.d, e.h, e.w); };
  return fmt::format("n{} {}->{} in {} out {} kernel {} stride {} pad {}{}{}", desc.samples, desc.in_channels,
                     desc.out_channels, triple(desc.in), triple(desc.out), triple(desc.kernel), triple(desc.stride),
                     triple(desc.pad_lo), desc.direct ? " direct" : "", desc.backwards ? " backwards" : "");
}

inline void expect_right(Conv3d& conv, const Conv3dDesc& desc, std::uint64_t seed) {
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

inline void expect_right(const Conv3dDesc& desc, std::uint64_t seed) {
  expect_right(*make_conv3d(Backend::cpu, desc), desc, seed);
}

inline Conv3dDesc cube(std::int64_t samples, std::int64_t in_channels, std::int64_t out_channels, std::int64_t width,
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
inline Conv3dDesc random_conv(Dice& dice, std::int64_t in_channels, std::int64_t out_channels, std::int64_t largest) {
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
inline Conv3dDesc random_deconv(Dice& dice, std::int64_t in_channels, std::int64_t out_channels, std::int64_t largest) {
  Conv3dDesc desc = random_conv(dice, out_channels, in_channels, largest);
  desc.backwards = true;
  desc.training = dice.between(0, 3) > 0;
  desc.input_gradient = dice.between(0, 3) > 0;
  return desc;
}

/// Whether names show that the kernels for bf16 run here, and not those for f32 in their place.
inline bool has_bf16() {
  return !make_conv3d(Backend::cpu, cube(1, 16, 16, 8))->implementations().front().starts_with("no bf16 instructions");
}

/// Whether f32 convolutions, which stand in for those of bf16, have kernels of their own for all calls, so that direct
/// ones never turn into matrix products.
inline bool has_direct_f32() {
  Conv3dDesc desc = cube(1, 64, 32, 4);
  desc.precision = Precision::f32;
  desc.direct = true;
  return make_conv3d(Backend::cpu, desc)->implementations().front().starts_with("jit");
}

inline void expect_names(const Conv3dDesc& desc, const std::string& prefix) {
  const auto names = make_conv3d(Backend::cpu, desc)->implementations();
  EXPECT_EQ(names.size(), 3U);
  for (const std::string& name : names) {
    EXPECT_TRUE(name.starts_with(has_bf16() ? prefix : "no bf16 instructions, f32:")) << name;
  }
}

/// One of each kind.
inline std::vector<Conv3dDesc> kinds() {
  Conv3dDesc tiling = cube(2, 16, 24, 10);
  tiling.kernel = tiling.stride = Extent::cube(2);
  tiling.out = Extent::cube(5);
  tiling.pad_lo = {};
  return {cube(2, 16, 24, 7), cube(1, 32, 64, 12), cube(1, 64, 32, 2), cube(1, 20, 3, 9, 2), tiling};
}

}  // namespace halograd::test
