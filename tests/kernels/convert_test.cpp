#include "halograd/kernels/convert.hpp"

#include "kernels/bf16_support.hpp"
#include "kernels/support.hpp"

#include <algorithm>
#include <cmath>

namespace halograd::test {
namespace {

class ConvertTest : public BackendTest {};

/// Sources whose value at channel c of global voxel (d, h, w) is 1000·d + 100·h + 10·w + c.
template <typename Source>
std::vector<Source> numbered(const ConvertDesc& desc) {
  const Extent extent = desc.source.extent();
  std::vector<Source> values(static_cast<std::size_t>(desc.channels * extent.volume()));
  for (std::int64_t v = 0; v < extent.volume(); ++v) {
    const Index at{desc.source.lo.d + v / (extent.h * extent.w), desc.source.lo.h + v / extent.w % extent.h,
                   desc.source.lo.w + v % extent.w};
    for (std::int64_t c = 0; c < desc.channels; ++c) {
      const std::int64_t i = desc.channels_first ? c * extent.volume() + v : v * desc.channels + c;
      values[static_cast<std::size_t>(i)] = static_cast<Source>(1000 * at.d + 100 * at.h + 10 * at.w + c);
    }
  }
  return values;
}

/// Whether every number is finite.
bool converts(Backend backend, const ConvertDesc& desc, const void* source, void* dst) {
  std::uint32_t refused = 0;
  convert_input(backend, desc, source, dst, &refused);
  return refused == 0;
}

/// Every voxel of source ∩ dst holds its number (its log1p), every other one what it held before.
template <typename Source>
void expect_numbers(Backend backend, ConvertDesc desc, DType dtype) {
  desc.dtype = dtype;
  const auto source = numbered<Source>(desc);
  const Extent extent = desc.dst.extent();
  std::vector<float> dst(static_cast<std::size_t>(desc.channels * extent.volume()), -7.0F);
  EXPECT_TRUE(converts(backend, desc, source.data(), dst.data()));
  for (std::int64_t v = 0; v < extent.volume(); ++v) {
    const Index at{desc.dst.lo.d + v / (extent.h * extent.w), desc.dst.lo.h + v / extent.w % extent.h,
                   desc.dst.lo.w + v % extent.w};
    for (std::int64_t c = 0; c < desc.channels; ++c) {
      const double number = static_cast<double>(static_cast<Source>(1000 * at.d + 100 * at.h + 10 * at.w + c));
      const double value = desc.transform == InputTransform::log1p ? std::log1p(number) : number;
      const double expected = desc.source.contains(at) ? value : -7.0;
      ASSERT_NEAR(dst[static_cast<std::size_t>(v * desc.channels + c)], expected, 1e-6 * std::abs(expected))
          << at.d << " " << at.h << " " << at.w << " channel " << c;
    }
  }
}

TEST_P(ConvertTest, PutsEveryVoxelInItsPlace) {
  for (const bool channels_first : {false, true}) {
    for (const InputTransform transform : {InputTransform::none, InputTransform::log1p}) {
      for (const std::int64_t channels : {std::int64_t{1}, std::int64_t{4}}) {
        // The source sticks out of the destination on one side and leaves a margin free on the other.
        const ConvertDesc desc{.transform = transform,
                               .channels = channels,
                               .channels_first = channels_first,
                               .source = {{2, 0, 1}, {6, 5, 8}},
                               .dst = {{1, 0, 3}, {5, 6, 9}}};
        expect_numbers<std::uint16_t>(GetParam(), desc, DType::u16);
        expect_numbers<std::int16_t>(GetParam(), desc, DType::i16);
        expect_numbers<std::uint8_t>(GetParam(), desc, DType::u8);
        expect_numbers<float>(GetParam(), desc, DType::f32);
      }
    }
  }
}

TEST_P(ConvertTest, ReadsTheWholeRangeOfSixteenBits) {
  ConvertDesc desc{.channels = 1, .source = Box::whole({1, 1, 65536}), .dst = Box::whole({1, 1, 65536})};
  std::vector<std::uint16_t> source(65536);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint16_t>(i);
  std::vector<float> dst(source.size());
  desc.transform = InputTransform::log1p;
  EXPECT_TRUE(converts(GetParam(), desc, source.data(), dst.data()));
  EXPECT_EQ(dst[0], 0.0F);
  EXPECT_FLOAT_EQ(dst[65535], static_cast<float>(std::log(65536.0)));
  desc.dtype = DType::i16;
  desc.transform = InputTransform::none;
  EXPECT_TRUE(converts(GetParam(), desc, source.data(), dst.data()));
  EXPECT_EQ(dst[32767], 32767.0F);
  EXPECT_EQ(dst[32768], -32768.0F);
}

/// What desc makes of a number.
double becomes(const ConvertDesc& desc, double number) {
  double value = number * desc.scale + desc.offset;
  if (desc.transform == InputTransform::log1p) value = std::log1p(value);
  if (desc.transform == InputTransform::window) {
    const auto [low, high] = desc.window;
    value = std::min(std::max(value, low), high) * 2 / (high - low) - (high + low) / (high - low);
  }
  return value * desc.gain + desc.shift;
}

/// A source that holds 3·i at its i-th place, read as desc says: every voxel of source ∩ dst from its mirrored place.
template <typename Source>
void expect_mirrored(Backend backend, ConvertDesc desc, DType dtype) {
  desc.dtype = dtype;
  const Extent from = desc.source.extent();
  std::vector<Source> source(static_cast<std::size_t>(desc.channels * from.volume()));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<Source>(3 * i);
  const Extent extent = desc.dst.extent();
  std::vector<float> dst(static_cast<std::size_t>(desc.channels * extent.volume()), -7.0F);
  EXPECT_TRUE(converts(backend, desc, source.data(), dst.data()));
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(dst.size()); ++i) {
    const std::int64_t v = i / desc.channels;
    const Index at{desc.dst.lo.d + v / (extent.h * extent.w), desc.dst.lo.h + v / extent.w % extent.h,
                   desc.dst.lo.w + v % extent.w};
    Index in = Box{at, at}.relative_to(desc.source.lo).lo;
    for (int k = 0; k < 3; ++k) in[k] = desc.flip[static_cast<std::size_t>(k)] ? from[k] - 1 - in[k] : in[k];
    const std::int64_t voxel = (in.d * from.h + in.h) * from.w + in.w;
    const std::int64_t place =
        desc.channels_first ? i % desc.channels * from.volume() + voxel : voxel * desc.channels + i % desc.channels;
    const double expected =
        desc.source.contains(at) ? becomes(desc, static_cast<double>(static_cast<Source>(3 * place))) : -7.0;
    ASSERT_NEAR(dst[static_cast<std::size_t>(i)], expected, 2e-6 * std::max(1.0, std::abs(expected)));
  }
}

TEST_P(ConvertTest, FlipsScalesAndWindows) {
  for (int way = 0; way < 8; ++way) {
    for (const bool channels_first : {false, true}) {
      for (const std::int64_t channels : {std::int64_t{1}, std::int64_t{3}}) {
        ConvertDesc desc{.channels = channels,
                         .channels_first = channels_first,
                         .flip = {(way & 4) != 0, (way & 2) != 0, (way & 1) != 0},
                         .source = {{2, 0, 1}, {6, 5, 8}},
                         .dst = {{1, 0, 3}, {5, 6, 9}}};
        expect_mirrored<std::int16_t>(GetParam(), desc, DType::i16);
        desc.scale = 0.5;
        desc.offset = 4;
        desc.gain = 1.1;
        desc.shift = -0.2;
        expect_mirrored<std::uint16_t>(GetParam(), desc, DType::u16);
        desc.transform = InputTransform::log1p;
        expect_mirrored<std::uint8_t>(GetParam(), desc, DType::u8);
        desc.scale = 1;
        desc.offset = 0;
        expect_mirrored<std::uint8_t>(GetParam(), desc, DType::u8);
        desc.transform = InputTransform::window;
        desc.offset = -100;
        desc.window = {-80, 150};
        expect_mirrored<float>(GetParam(), desc, DType::f32);
        expect_mirrored<std::int16_t>(GetParam(), desc, DType::i16);
      }
    }
  }
}

TEST_P(ConvertTest, AWindowHidesNothingThatIsNotFinite) {
  ConvertDesc desc{.dtype = DType::f32, .transform = InputTransform::window, .window = {-200, 300}, .channels = 1};
  desc.source = desc.dst = Box::whole({1, 1, 20});
  std::vector<float> source(20, 50.0F);
  source[1] = -1e6F;
  source[2] = 300.0F;
  std::vector<float> dst(20);
  EXPECT_TRUE(converts(GetParam(), desc, source.data(), dst.data()));
  EXPECT_FLOAT_EQ(dst[0], 0.0F);
  EXPECT_EQ(dst[1], -1.0F);
  EXPECT_EQ(dst[2], 1.0F);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    source[17] = bad;
    EXPECT_FALSE(converts(GetParam(), desc, source.data(), dst.data())) << bad;
  }
}

TEST_P(ConvertTest, LabelsAreMirroredAndChecked) {
  const Extent extent{3, 4, 21};
  std::vector<std::uint8_t> source(static_cast<std::size_t>(extent.volume()));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i % 251);
  std::vector<std::uint8_t> dst(source.size());
  for (int way = 0; way < 8; ++way) {
    const LabelDesc desc{.extent = extent, .flip = {(way & 4) != 0, (way & 2) != 0, (way & 1) != 0}};
    EXPECT_EQ(convert_labels(GetParam(), desc, source.data(), dst.data()), -1);
    for (std::int64_t i = 0; i < extent.volume(); ++i) {
      Index at{i / (extent.h * extent.w), i / extent.w % extent.h, i % extent.w};
      for (int k = 0; k < 3; ++k) at[k] = desc.flip[static_cast<std::size_t>(k)] ? extent[k] - 1 - at[k] : at[k];
      const std::int64_t from = (at.d * extent.h + at.h) * extent.w + at.w;
      ASSERT_EQ(dst[static_cast<std::size_t>(i)], source[static_cast<std::size_t>(from)]) << way << " " << i;
    }
  }
  std::ranges::fill(source, std::uint8_t{2});
  source[100] = 255;
  LabelDesc three{.extent = extent, .classes = 3, .ignore_label = 255};
  EXPECT_EQ(convert_labels(GetParam(), three, source.data(), dst.data()), -1);
  source[30] = 3;
  source[200] = 7;
  EXPECT_EQ(convert_labels(GetParam(), three, source.data(), dst.data()), 7);
  three.ignore_label = -1;
  EXPECT_EQ(convert_labels(GetParam(), three, source.data(), dst.data()), 255);
}

TEST_P(ConvertTest, TellsWhatIsNotFinite) {
  ConvertDesc desc{.channels = 1, .source = Box::whole({2, 3, 4}), .dst = Box::whole({2, 3, 4})};
  std::vector<float> dst(24);
  desc.dtype = DType::f32;
  std::vector<float> source(24, 1.0F);
  EXPECT_TRUE(converts(GetParam(), desc, source.data(), dst.data()));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    source[13] = bad;
    EXPECT_FALSE(converts(GetParam(), desc, source.data(), dst.data()));
  }
  // A value outside the destination is nobody's concern.
  ConvertDesc cut = desc;
  cut.dst = {{0, 0, 0}, {1, 3, 4}};
  EXPECT_TRUE(converts(GetParam(), cut, source.data(), dst.data()));

  std::vector<std::int16_t> counts(24, 5);
  desc.dtype = DType::i16;
  desc.transform = InputTransform::log1p;
  EXPECT_TRUE(converts(GetParam(), desc, counts.data(), dst.data()));
  counts[23] = -1;  // log(0)
  EXPECT_FALSE(converts(GetParam(), desc, counts.data(), dst.data()));
}

/// bf16 destinations hold what float ones do, rounded.
template <typename Source>
void expect_rounded_numbers(ConvertDesc desc, DType dtype) {
  desc.dtype = dtype;
  std::vector<Source> source = numbered<Source>(desc);
  const auto count = static_cast<std::size_t>(desc.channels * desc.dst.volume());
  std::vector<float> wide(count, -7.0F);
  std::vector<Bf16> narrow = to_bf16(wide);
  EXPECT_TRUE(converts(Backend::cpu, desc, source.data(), wide.data()));
  desc.dst_type = DType::bf16;
  EXPECT_TRUE(converts(Backend::cpu, desc, source.data(), narrow.data()));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(narrow[i].bits, Bf16(wide[i]).bits) << wide[i] << " at " << i;
}

TEST(ConvertBf16, RoundsWhatFloatsBecome) {
  for (int way = 0; way < 8; ++way) {
    for (const bool channels_first : {false, true}) {
      for (const InputTransform transform : {InputTransform::none, InputTransform::log1p, InputTransform::window}) {
        for (const std::int64_t channels : {std::int64_t{1}, std::int64_t{4}}) {
          // Rows longer than what is converted at a time.
          ConvertDesc desc{.transform = transform,
                           .window = {100, 4000},
                           .gain = 1.1,
                           .shift = -0.2,
                           .channels = channels,
                           .channels_first = channels_first,
                           .flip = {(way & 4) != 0, (way & 2) != 0, (way & 1) != 0},
                           .source = {{2, 0, 1}, {4, 3, 700}},
                           .dst = {{1, 0, 3}, {4, 4, 702}}};
          expect_rounded_numbers<std::uint16_t>(desc, DType::u16);
          expect_rounded_numbers<std::uint8_t>(desc, DType::u8);
          desc.scale = 0.5;
          expect_rounded_numbers<std::int16_t>(desc, DType::i16);
          expect_rounded_numbers<float>(desc, DType::f32);
        }
      }
    }
  }
}

TEST(ConvertBf16, TellsWhatIsNotFinite) {
  ConvertDesc desc{.dtype = DType::f32, .dst_type = DType::bf16, .channels = 1};
  desc.source = desc.dst = Box::whole({1, 1, 600});
  std::vector<float> source(600, 1.0F);
  std::vector<Bf16> dst(600);
  EXPECT_TRUE(converts(Backend::cpu, desc, source.data(), dst.data()));
  for (const std::size_t at : {std::size_t{0}, std::size_t{511}, std::size_t{599}}) {
    source[at] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(converts(Backend::cpu, desc, source.data(), dst.data())) << at;
    source[at] = 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ConvertTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
