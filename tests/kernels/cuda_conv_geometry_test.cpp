#include "halograd/kernels/cuda/conv_geometry.hpp"

#include "halograd/core/error.hpp"
#include "halograd/kernels/cuda/conv_pass.hpp"
#include "kernels/support.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace halograd::test {
namespace {

using cuda::ConvPart;
using cuda::TensorShape;

/// Small whole numbers: their sums are exact in any order.
std::vector<float> whole_numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values = random_values(count, seed, -3.49, 3.49);
  for (float& value : values) value = std::round(value);
  return values;
}

std::int64_t x_count(const Conv3dDesc& desc) {
  return desc.samples * desc.in_channels * desc.in.volume();
}
std::int64_t y_count(const Conv3dDesc& desc) {
  return desc.samples * desc.out_channels * desc.out.volume();
}
std::int64_t w_count(const Conv3dDesc& desc) {
  return desc.out_channels * desc.in_channels * desc.kernel.volume();
}

std::size_t place(const TensorShape& shape, std::int64_t n, std::int64_t c, const Index& at) {
  return static_cast<std::size_t>(n * shape.strides[0] + c * shape.strides[1] + at.d * shape.strides[2] +
                                  at.h * shape.strides[3] + at.w * shape.strides[4]);
}

template <typename Body>
void for_each_voxel(const Extent& extent, const Body& body) {
  for (Index at; at.d < extent.d; ++at.d) {
    for (at.h = 0; at.h < extent.h; ++at.h) {
      for (at.w = 0; at.w < extent.w; ++at.w) body(at);
    }
  }
}

/// Calls body(place in x, place in y, place in the packed weights) for every product of a part, as cuDNN defines a
/// convolution: output o reads input o·stride − padding + k, and zero outside.
template <typename Body>
void for_each_product(const ConvPart& part, const Body& body) {
  const Conv3dDesc& desc = part.desc;
  for (std::int64_t n = 0; n < desc.samples; ++n) {
    for_each_voxel(desc.out, [&](const Index& out) {
      for_each_voxel(desc.kernel, [&](const Index& tap) {
        Index in;
        for (int i = 0; i < 3; ++i) {
          in[i] = out[i] * desc.stride[i] - desc.pad_lo[i] + tap[i];
          if (in[i] < 0 || in[i] >= desc.in[i]) return;
        }
        for (std::int64_t o = 0; o < desc.out_channels; ++o) {
          for (std::int64_t c = 0; c < desc.in_channels; ++c) {
            body(static_cast<std::size_t>(part.x_offset) + place(part.x(), n, c, in),
                 static_cast<std::size_t>(part.y_offset) + place(part.y(), n, o, out), place(part.w(), o, c, tap));
          }
        }
      });
    });
  }
}

/// Sets what a tensor of the part covers in its buffer.
void clear(const TensorShape& shape, std::int64_t offset, std::vector<float>& buffer) {
  for (std::int64_t n = 0; n < shape.dims[0]; ++n) {
    for (std::int64_t c = 0; c < shape.dims[1]; ++c) {
      for_each_voxel({shape.dims[2], shape.dims[3], shape.dims[4]},
                     [&](const Index& at) { buffer[static_cast<std::size_t>(offset) + place(shape, n, c, at)] = 0; });
    }
  }
}

struct Case {
  Conv3dDesc desc;
  std::vector<float> x, dy, w;  ///< w in PyTorch's order

  explicit Case(const Conv3dDesc& described, std::uint64_t seed)
      : desc(described),
        x(whole_numbers(x_count(desc), seed)),
        dy(whole_numbers(y_count(desc), seed + 1)),
        w(whole_numbers(w_count(desc), seed + 2)) {}

  [[nodiscard]] std::vector<float> packed_weights() const {
    std::vector<float> packed(w.size());
    const std::int64_t places = desc.kernel.volume();
    for (std::int64_t o = 0; o < desc.out_channels; ++o) {
      for (std::int64_t c = 0; c < desc.in_channels; ++c) {
        for (std::int64_t k = 0; k < places; ++k) {
          packed[static_cast<std::size_t>((o * places + k) * desc.in_channels + c)] =
              w[static_cast<std::size_t>((o * desc.in_channels + c) * places + k)];
        }
      }
    }
    return packed;
  }
};

/// The three results of all parts together, in buffers that held NaN before.
void expect_whole(const Case& test, std::int64_t pieces) {
  const Conv3dDesc& desc = test.desc;
  const auto reference = make_conv3d(Backend::reference, desc);
  std::vector<float> y(test.dy.size()), dx(test.x.size()), dw(test.w.size());
  reference->set_weights(test.w.data());
  reference->forward(test.x.data(), y.data());
  reference->backward_data(test.dy.data(), dx.data());
  reference->backward_weights(test.x.data(), test.dy.data(), dw.data());

  const ConvPart whole = cuda::whole_part(desc);
  const std::vector<float> packed = test.packed_weights();
  const float nan = std::nanf("");
  const std::string name = fmt::format("{} in {}", describe(cuda::ConvPass::forward, whole), pieces);
  std::vector<float> got_y(y.size(), nan);
  std::vector<float> got_dw(dw.size(), 0);
  for (const ConvPart& part : cuda::cut(whole, pieces, false)) {
    clear(part.y(), part.y_offset, got_y);
    for_each_product(part, [&](std::size_t in, std::size_t out, std::size_t weight) {
      got_y[out] += test.x[in] * packed[weight];
      got_dw[weight] += test.x[in] * test.dy[out];
    });
  }
  EXPECT_EQ(got_y, y) << name;

  std::vector<float> got_dx(dx.size(), cuda::covers_input(whole) ? nan : 0);
  for (const ConvPart& part : cuda::cut(whole, pieces, true)) {
    clear(part.x(), part.x_offset, got_dx);
    for_each_product(part, [&](std::size_t in, std::size_t out, std::size_t weight) {
      got_dx[in] += test.dy[out] * packed[weight];
    });
  }
  EXPECT_EQ(got_dx, dx) << name;

  Case gradient = test;
  gradient.w = dw;
  EXPECT_EQ(got_dw, gradient.packed_weights()) << name;
}

/// With voxels before the first window and behind the last, and padding as wide as deconvolutions have it.
std::optional<Conv3dDesc> random_case(Dice& dice) {
  Conv3dDesc desc;
  desc.samples = dice.between(1, 3);
  desc.in_channels = dice.between(1, 3);
  desc.out_channels = dice.between(1, 3);
  for (int i = 0; i < 3; ++i) {
    desc.kernel[i] = dice.between(1, 4);
    desc.stride[i] = dice.between(1, 3);
    desc.in[i] = dice.between(1, i == 0 ? 14 : 6);
    desc.pad_lo[i] = dice.between(-2, desc.kernel[i] - 1);
    const std::int64_t windows =
        desc.in[i] + desc.pad_lo[i] + dice.between(-4, desc.kernel[i] - 1) - desc.kernel[i] + desc.stride[i];
    if (windows < desc.stride[i] || desc.in[i] + desc.pad_lo[i] < 1) return std::nullopt;
    desc.out[i] = windows / desc.stride[i];
  }
  return desc;
}

TEST(CudaConvGeometry, PartsGiveTheWholeOnRandomShapes) {
  Dice dice(11);
  int cases = 0;
  int cropped = 0;
  while (cases < 150) {
    const auto desc = random_case(dice);
    if (!desc) continue;
    ++cases;
    if (!cuda::covers_input(cuda::whole_part(*desc))) ++cropped;
    expect_whole(Case(*desc, static_cast<std::uint64_t>(cases)), dice.between(1, 12));
  }
  EXPECT_GT(cropped, 30);
}

Box random_box(Dice& dice, const Extent& extent) {
  Box box;
  for (int i = 0; i < 3; ++i) {
    box.lo[i] = dice.between(0, extent[i] - 1);
    box.hi[i] = dice.between(box.lo[i] + 1, extent[i]);
  }
  return box;
}

/// A box and the slabs around it.
std::vector<Box> box_and_shell(const Box& box, const Extent& extent) {
  std::vector<Box> boxes;
  Box rest = Box::whole(extent);
  for (int i = 0; i < 3; ++i) {
    Box slab = rest;
    slab.hi[i] = box.lo[i];
    if (!slab.empty()) boxes.push_back(slab);
    slab = rest;
    slab.lo[i] = box.hi[i];
    if (!slab.empty()) boxes.push_back(slab);
    rest.lo[i] = box.lo[i];
    rest.hi[i] = box.hi[i];
  }
  boxes.push_back(rest);
  return boxes;
}

/// Outputs cut at random in every dimension, each box into pieces: together they are the whole, each output once.
TEST(CudaConvGeometry, BoxesTogetherAreTheWhole) {
  Dice dice(13);
  for (int cases = 0; cases < 150;) {
    const auto desc = random_case(dice);
    if (!desc) continue;
    ++cases;
    const Case test(*desc, static_cast<std::uint64_t>(cases));
    const auto reference = make_conv3d(Backend::reference, *desc);
    std::vector<float> y(test.dy.size());
    reference->set_weights(test.w.data());
    reference->forward(test.x.data(), y.data());
    const std::vector<float> packed = test.packed_weights();
    std::vector<float> got(y.size(), std::nanf(""));
    for (const Box& box : box_and_shell(random_box(dice, desc->out), desc->out)) {
      for (const ConvPart& part : cuda::cut(outputs_of(cuda::whole_part(*desc), box), dice.between(1, 4), false)) {
        clear(part.y(), part.y_offset, got);
        for_each_product(part, [&](std::size_t in, std::size_t out, std::size_t weight) {
          got[out] += test.x[in] * packed[weight];
        });
      }
    }
    ASSERT_EQ(got, y) << describe(cuda::ConvPass::forward, cuda::whole_part(*desc));
  }
}

TEST(CudaConvGeometry, PartsAreWhatTheLibraryTakes) {
  Dice dice(12);
  for (int cases = 0; cases < 2000;) {
    const auto desc = random_case(dice);
    if (!desc) continue;
    ++cases;
    for (const bool by_input : {false, true}) {
      ConvPart whole = cuda::whole_part(*desc);
      if (!by_input) whole = outputs_of(whole, random_box(dice, desc->out));
      for (const ConvPart& part : cuda::cut(whole, dice.between(1, 12), by_input)) {
        const Conv3dDesc& d = part.desc;
        for (int i = 0; i < 3; ++i) {
          const std::int64_t lo = d.pad_lo[i];
          const std::int64_t hi = cuda::pad_hi(d, i);
          ASSERT_GE(d.in[i], 1);
          ASSERT_GE(d.out[i], 1);
          ASSERT_GE(lo, 0);
          ASSERT_LT(lo, d.kernel[i]);
          ASSERT_GE(hi, 0);
          // The library's own rule for the output's extent.
          ASSERT_EQ(d.out[i], (d.in[i] + lo + hi - d.kernel[i]) / d.stride[i] + 1) << d.in[i] << " " << lo << " " << hi;
        }
      }
    }
  }
}

TEST(CudaConvGeometry, TensorsAreChannelsLastInTheLibrarysOrder) {
  const ConvPart part = cuda::whole_part({.samples = 2,
                                          .in_channels = 4,
                                          .out_channels = 16,
                                          .in = {8, 10, 12},
                                          .out = {8, 10, 12},
                                          .kernel = Extent::cube(3),
                                          .pad_lo = Extent::cube(1)});
  EXPECT_EQ(part.x(), (TensorShape{{2, 4, 8, 10, 12}, {3840, 1, 480, 48, 4}}));
  EXPECT_EQ(part.y(), (TensorShape{{2, 16, 8, 10, 12}, {15360, 1, 1920, 192, 16}}));
  EXPECT_EQ(part.w(), (TensorShape{{16, 4, 3, 3, 3}, {108, 1, 36, 12, 4}}));
  EXPECT_EQ(part.x_offset, 0);
  EXPECT_TRUE(cuda::covers_input(part));
}

TEST(CudaConvGeometry, PaddingIsTheSameOnBothSidesWhereThatChangesNothing) {
  Conv3dDesc desc{.samples = 1, .in_channels = 1, .out_channels = 1, .in = {8, 8, 9}, .out = {4, 8, 9}, .pad_lo = {}};
  desc.kernel = Extent::cube(3);
  desc.stride = {2, 1, 1};
  desc.pad_lo = {1, 1, 0};
  EXPECT_EQ(cuda::pad_hi(desc, 0), 1);  // none is needed; with one there are still 4 windows
  EXPECT_EQ(cuda::pad_hi(desc, 1), 1);
  EXPECT_EQ(cuda::pad_hi(desc, 2), 2);  // as 9 windows of 9 voxels need it
}

TEST(CudaConvGeometry, VoxelsBeforeTheFirstWindowAreLeftOut) {
  // Every second voxel, from the second plane, third row and first column on; a whole stride is left over in w.
  const Conv3dDesc desc{.samples = 2,
                        .in_channels = 3,
                        .out_channels = 1,
                        .in = {6, 7, 8},
                        .out = {3, 3, 3},
                        .stride = Extent::cube(2),
                        .pad_lo = {-1, -2, 0}};
  const ConvPart part = cuda::whole_part(desc);
  EXPECT_EQ(part.desc.in, (Extent{5, 5, 5}));
  EXPECT_EQ(part.desc.pad_lo, Extent{});
  EXPECT_EQ(part.x_offset, (1 * 7 + 2) * 8 * 3);
  EXPECT_EQ(part.x(), (TensorShape{{2, 3, 5, 5, 5}, {6 * 7 * 8 * 3, 1, 7 * 8 * 3, 8 * 3, 3}}));
  EXPECT_FALSE(cuda::covers_input(part));
}

TEST(CudaConvGeometry, RefusesWindowsWithoutAVoxel) {
  Conv3dDesc desc{.samples = 1, .in_channels = 1, .out_channels = 1, .in = {4, 4, 4}, .out = {4, 4, 4}, .pad_lo = {}};
  desc.kernel = Extent::cube(3);
  desc.pad_lo = {3, 1, 1};
  EXPECT_THROW(cuda::whole_part(desc), UsageError);
  desc.pad_lo = {1, 1, 1};
  desc.out.h = 7;  // the last would begin two voxels behind the input
  EXPECT_THROW(cuda::whole_part(desc), UsageError);
}

TEST(CudaConvGeometry, CutsWhatTheLibraryCannotCount) {
  Conv3dDesc desc{.samples = 1,
                  .in_channels = 4,
                  .out_channels = 16,
                  .in = Extent::cube(512),
                  .out = Extent::cube(512),
                  .kernel = Extent::cube(3),
                  .pad_lo = Extent::cube(1)};
  EXPECT_EQ(cuda::fewest_pieces(cuda::whole_part(desc), false), 2);
  // Two slabs of inputs need 257 planes of outputs each: 1.08e9 elements.
  EXPECT_EQ(cuda::fewest_pieces(cuda::whole_part(desc), true), 2);
  desc.samples = 3;
  EXPECT_EQ(cuda::fewest_pieces(cuda::whole_part(desc), false), 4);  // two slabs a sample
  EXPECT_EQ(cuda::cut(cuda::whole_part(desc), 4, false).size(), 6U);
  desc.samples = 1;
  desc.in = desc.out = Extent::cube(128);
  EXPECT_EQ(cuda::fewest_pieces(cuda::whole_part(desc), false), 1);
}

TEST(CudaConvGeometry, PiecesKeepConvertedOperandsWithinALimit) {
  Conv3dDesc desc{.samples = 1,
                  .in_channels = 4,
                  .out_channels = 16,
                  .in = Extent::cube(128),
                  .out = Extent::cube(128),
                  .kernel = Extent::cube(3),
                  .pad_lo = Extent::cube(1)};
  // 4 · 128³ · (8 + 16) bytes are 201 MB; of each third, with the planes that it shares, 68.7 MB.
  EXPECT_EQ(cuda::pieces_within(cuda::whole_part(desc), false, 1 << 30), 1);
  EXPECT_EQ(cuda::pieces_within(cuda::whole_part(desc), false, 69'000'000), 3);
  EXPECT_EQ(cuda::pieces_within(cuda::whole_part(desc), false, 67'200'000), 4);
  EXPECT_EQ(cuda::pieces_within(cuda::whole_part(desc), true, 69'000'000), 4);  // outputs are shared, and are larger
  EXPECT_EQ(cuda::pieces_within(cuda::whole_part(desc), false, 1), 128);
}

}  // namespace
}  // namespace halograd::test
