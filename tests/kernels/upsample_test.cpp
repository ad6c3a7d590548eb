#include "halograd/kernels/upsample.hpp"

#include "kernels/bf16_support.hpp"
#include "kernels/slices.hpp"

#include <algorithm>

namespace halograd::test {
namespace {

/// y(output) of channel c by the definition, in double.
double naive(UpsampleKind kind, const Extent& factor, const Extent& in, const Slice& x, std::int64_t n,
             const Index& output, std::int64_t c) {
  if (kind == UpsampleKind::nearest) {
    return static_cast<double>(x.at(n, {output.d / factor.d, output.h / factor.h, output.w / factor.w}, c));
  }
  Index lower;
  std::array<double, 3> share{};
  for (int i = 0; i < 3; ++i) {
    const double at = std::max(0.0, (static_cast<double>(output[i]) + 0.5) / static_cast<double>(factor[i]) - 0.5);
    lower[i] = static_cast<std::int64_t>(at);
    share[static_cast<std::size_t>(i)] = at - static_cast<double>(lower[i]);
  }
  double sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    double weight = 1;
    Index at;
    for (int i = 0; i < 3; ++i) {
      const bool upper = (corner >> i & 1) != 0;
      const double part = share[static_cast<std::size_t>(i)];
      weight *= upper ? part : 1 - part;
      at[i] = std::min(in[i] - 1, lower[i] + (upper ? 1 : 0));
    }
    sum += weight * static_cast<double>(x.at(n, at, c));
  }
  return sum;
}

struct Volume {
  UpsampleKind kind = UpsampleKind::nearest;
  Extent factor;
  Extent in;
  std::int64_t samples = 0;
  std::int64_t channels = 0;

  [[nodiscard]] Extent out() const { return {in.d * factor.d, in.h * factor.h, in.w * factor.w}; }
};

Volume random_volume(Dice& dice, UpsampleKind kind) {
  Volume volume{.kind = kind, .samples = dice.between(1, 2), .channels = dice.one_of<std::int64_t>({1, 3, 16, 19})};
  for (int i = 0; i < 3; ++i) {
    volume.factor[i] = dice.between(1, 4);
    volume.in[i] = dice.between(1, 5);
  }
  return volume;
}

/// A random box of outputs, never empty.
Box random_part(Dice& dice, const Extent& extent) {
  Box box;
  for (int i = 0; i < 3; ++i) {
    box.lo[i] = dice.between(0, extent[i] - 1);
    box.hi[i] = dice.between(box.lo[i] + 1, extent[i]);
  }
  return box;
}

UpsampleDesc desc_of(const Volume& volume, const VoxelLayout& src, const Box& out, const VoxelLayout& dst) {
  return {volume.samples, volume.channels, volume.kind, volume.factor, volume.in, src, out, dst};
}

template <typename Body>
void for_random_volumes(const Body& body) {
  Dice dice(5);
  for (std::uint64_t round = 0; round < 40; ++round) {
    const UpsampleKind kind = round % 2 == 0 ? UpsampleKind::nearest : UpsampleKind::trilinear;
    const Volume volume = random_volume(dice, kind);
    SCOPED_TRACE("round " + std::to_string(round));
    body(dice, volume, round);
  }
}

class UpsampleTest : public BackendTest {};

TEST_P(UpsampleTest, MatchesTheDefinitionOnRandomPartsAndWritesNothingElse) {
  for_random_volumes([&](Dice& dice, const Volume& volume, std::uint64_t round) {
    Slice x = dense_slice(volume.samples, Box::whole(volume.in), volume.channels);
    x.buffer = random_values(static_cast<std::int64_t>(x.buffer.size()), round);
    const Box out = random_part(dice, volume.out());
    const Box needed = upsample_window(volume.kind, volume.factor).input_needed(out, volume.in);
    Slice part = random_slice(dice, volume.samples, needed, volume.channels, round + 1);
    // What lies around the inputs that are needed must not be read.
    std::fill(part.buffer.begin(), part.buffer.end(), std::numeric_limits<float>::quiet_NaN());
    part = with_values(volume.samples, needed, part, values_of(volume.samples, needed, x));
    const Slice before = random_slice(dice, volume.samples, out, volume.channels, round + 2);
    Slice y = before;
    upsample(GetParam(), desc_of(volume, part.layout, out, y.layout), part.data(), y.data());
    std::vector<double> expected;
    for_each_value(volume.samples, out, volume.channels, [&](std::int64_t n, const Index& at, std::int64_t c) {
      expected.push_back(naive(volume.kind, volume.factor, volume.in, x, n, at, c));
    });
    const std::vector<float> got = values_of(volume.samples, out, y);
    EXPECT_LT(relative_l2(got, expected), 1e-6);
    EXPECT_EQ(y.buffer, with_values(volume.samples, out, before, got).buffer);
  });
}

/// ⟨y, dy⟩ = ⟨x, dx⟩ for any x and dy: the backward pass is the transpose of a linear map.
TEST_P(UpsampleTest, BackwardIsTheTransposeOfForward) {
  for_random_volumes([&](Dice& dice, const Volume& volume, std::uint64_t round) {
    const Box out = random_part(dice, volume.out());
    const Box needed = upsample_window(volume.kind, volume.factor).input_needed(out, volume.in);
    const Slice x = random_slice(dice, volume.samples, needed, volume.channels, round);
    const Slice dy = random_slice(dice, volume.samples, out, volume.channels, round + 1);
    const UpsampleDesc desc = desc_of(volume, x.layout, out, dy.layout);
    Slice y = dy;
    Slice dx = x;
    upsample(GetParam(), desc, x.data(), y.data());
    upsample_backward(GetParam(), desc, dy.data(), dx.data());
    double outputs = 0;
    double inputs = 0;
    double scale = 1;
    for_each_value(volume.samples, out, volume.channels, [&](std::int64_t n, const Index& at, std::int64_t c) {
      outputs += static_cast<double>(y.at(n, at, c)) * static_cast<double>(dy.at(n, at, c));
      scale += std::abs(static_cast<double>(y.at(n, at, c)) * static_cast<double>(dy.at(n, at, c)));
    });
    for_each_value(volume.samples, x.layout.box, volume.channels, [&](std::int64_t n, const Index& at, std::int64_t c) {
      inputs += static_cast<double>(x.at(n, at, c)) * static_cast<double>(dx.at(n, at, c));
    });
    EXPECT_NEAR(outputs, inputs, 1e-6 * scale);
    // Every voxel of the layout is assigned, no channel beside the slice's is.
    const std::vector<float> got = values_of(volume.samples, x.layout.box, dx);
    EXPECT_EQ(dx.buffer, with_values(volume.samples, x.layout.box, x, got).buffer);
  });
}

TEST_P(UpsampleTest, EachInputsGradientIsWhatTheDefinitionSays) {
  const Volume volume{UpsampleKind::trilinear, {2, 3, 1}, {3, 2, 4}, 1, 2};
  const Box all = Box::whole(volume.out());
  Slice dy = dense_slice(1, all, 2);
  dy.buffer = random_values(static_cast<std::int64_t>(dy.buffer.size()), 3);
  Slice dx = dense_slice(1, Box::whole(volume.in), 2, 1e30F);
  upsample_backward(GetParam(), desc_of(volume, dx.layout, all, dy.layout), dy.data(), dx.data());
  for_each_value(1, Box::whole(volume.in), 2, [&](std::int64_t n, const Index& at, std::int64_t c) {
    Slice unit = dense_slice(1, Box::whole(volume.in), 2);
    unit.at(n, at, c) = 1;
    double expected = 0;
    for_each_value(1, all, 2, [&](std::int64_t, const Index& o, std::int64_t channel) {
      expected +=
          naive(volume.kind, volume.factor, volume.in, unit, 0, o, channel) * static_cast<double>(dy.at(0, o, channel));
    });
    EXPECT_NEAR(static_cast<double>(dx.at(n, at, c)), expected, 1e-5);
  });
}

/// Cuts the outputs at places that are no multiples of the factor too.
TEST_P(UpsampleTest, PartsWithTheMarginsOfTheWindowJoinToTheWhole) {
  for_random_volumes([&](Dice& dice, const Volume& volume, std::uint64_t round) {
    const Box all = Box::whole(volume.out());
    Slice x = dense_slice(volume.samples, Box::whole(volume.in), volume.channels);
    x.buffer = random_values(static_cast<std::int64_t>(x.buffer.size()), round);
    Slice dy = dense_slice(volume.samples, all, volume.channels);
    dy.buffer = random_values(static_cast<std::int64_t>(dy.buffer.size()), round + 1);
    Slice y = dy;
    Slice dx = x;
    const UpsampleDesc whole = desc_of(volume, x.layout, all, y.layout);
    upsample(GetParam(), whole, x.data(), y.data());
    upsample_backward(GetParam(), whole, dy.data(), dx.data());

    Slice joined = dense_slice(volume.samples, all, volume.channels, 1e30F);
    Slice added = dense_slice(volume.samples, Box::whole(volume.in), volume.channels);
    const Index cut{dice.between(0, all.hi.d), dice.between(0, all.hi.h), dice.between(0, all.hi.w)};
    for (int corner = 0; corner < 8; ++corner) {
      Box out = all;
      for (int i = 0; i < 3; ++i) ((corner >> i & 1) != 0 ? out.lo : out.hi)[i] = cut[i];
      if (out.empty()) continue;
      const Box needed = upsample_window(volume.kind, volume.factor).input_needed(out, volume.in);
      Slice part_x = dense_slice(volume.samples, needed, volume.channels);
      part_x.buffer = values_of(volume.samples, needed, x);
      Slice part_dx = part_x;
      const UpsampleDesc desc = desc_of(volume, part_x.layout, out, joined.layout);
      upsample(GetParam(), desc, part_x.data(), joined.data());
      upsample_backward(GetParam(), desc, dy.data(), part_dx.data());
      for_each_value(volume.samples, needed, volume.channels, [&](std::int64_t n, const Index& at, std::int64_t c) {
        added.at(n, at, c) += part_dx.at(n, at, c);
      });
    }
    EXPECT_EQ(joined.buffer, y.buffer);
    EXPECT_LT(relative_l2(added.buffer, dx.buffer), 1e-6);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, UpsampleTest, both_backends(), backend_test_name);

/// What both directions do to the same numbers in bf16 and, by the reference, in float.
void expect_same_in_bf16(const Volume& volume, const Box& out, const Slice& x, const Slice& y) {
  UpsampleDesc desc = desc_of(volume, x.layout, out, y.layout);
  Slice forward = y;
  Slice backward = x;
  upsample(Backend::reference, desc, x.data(), forward.data());
  upsample_backward(Backend::reference, desc, y.data(), backward.data());
  desc.type = DType::bf16;
  Bf16Slice narrow_x(x);
  Bf16Slice narrow_y(y);
  upsample(Backend::cpu, desc, narrow_x.data(), narrow_y.data());
  expect_rounded(narrow_y.floats(), forward.buffer, 1e-6);
  narrow_y = Bf16Slice(y);
  upsample_backward(Backend::cpu, desc, narrow_y.data(), narrow_x.data());
  expect_rounded(narrow_x.floats(), backward.buffer, 1e-6);
}

TEST(UpsampleBf16, IsTheReferenceRoundedOnceAndWritesNothingElse) {
  for_random_volumes([&](Dice& dice, const Volume& volume, std::uint64_t round) {
    const Box out = random_part(dice, volume.out());
    const Box needed = upsample_window(volume.kind, volume.factor).input_needed(out, volume.in);
    expect_same_in_bf16(volume, out, random_bf16_slice(dice, volume.samples, needed, volume.channels, round),
                        random_bf16_slice(dice, volume.samples, out, volume.channels, round + 1));
  });
}

TEST(UpsampleBf16, TakesRowsOfAnyLength) {
  Dice dice(6);
  for (const std::int64_t channels : {300, 5000}) {
    const Volume volume{UpsampleKind::trilinear, {1, 2, 2}, {1, 2, 18}, 1, channels};
    const Box all = Box::whole(volume.out());
    expect_same_in_bf16(volume, all, random_bf16_slice(dice, 1, Box::whole(volume.in), channels, 1),
                        random_bf16_slice(dice, 1, all, channels, 2));
  }
}

TEST(UpsampleWindow, ReachesEveryOutputThatAnInputWeighsIn) {
  for (const UpsampleKind kind : {UpsampleKind::nearest, UpsampleKind::trilinear}) {
    for (std::int64_t factor = 1; factor <= 5; ++factor) {
      const Window window = upsample_window(kind, Extent::cube(factor));
      EXPECT_EQ(window.output_extent({3, 4, 5}), (Extent{3 * factor, 4 * factor, 5 * factor}));
    }
  }
  // At a cut between two inputs, linear interpolation reads one voxel of either side, the nearest voxel none.
  const Box upper{{4, 0, 0}, {8, 1, 1}};
  EXPECT_EQ(upsample_window(UpsampleKind::trilinear, {2, 1, 1}).input_needed(upper, {4, 1, 1}).lo.d, 1);
  EXPECT_EQ(upsample_window(UpsampleKind::nearest, {2, 1, 1}).input_needed(upper, {4, 1, 1}).lo.d, 2);
}

}  // namespace
}  // namespace halograd::test
