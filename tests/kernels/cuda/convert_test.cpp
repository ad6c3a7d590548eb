#include "halograd/kernels/convert.hpp"

#include "kernels/convert_cases.hpp"
#include "kernels/cuda/on_device.hpp"

#include <limits>

namespace halograd::test {
namespace {

class CudaConversions : public OnDevice {
protected:
  /// What becomes of a source in a destination of `before`, and the word that tells of numbers that are not finite.
  template <typename Source>
  [[nodiscard]] std::uint32_t convert(ConvertDesc desc, const DeviceArray& to, const std::vector<Source>& source,
                                      std::uint32_t word = 0) const {
    desc.dst_type = type();
    const DeviceArray from = array(source);
    const DeviceArray refused = array(std::vector<std::uint32_t>{word});
    run([&] { convert_input(queue, desc, from.data(), to.data(), refused.data<std::uint32_t>()); }, {&to, &refused});
    return refused.values<std::uint32_t>()[0];
  }
};

TEST_P(CudaConversions, MatchTheReferenceAndWriteNothingElse) {
  Dice dice(1);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ConvertDesc desc = random_conversion(dice);
    const auto source = random_source(dice, desc.dtype, desc.source.volume() * desc.channels);
    std::vector<float> expected(static_cast<std::size_t>(desc.dst.volume() * desc.channels), -7.0F);
    const DeviceArray dst = activations(expected, dice.between(0, 3) == 0 ? 1 : 0);
    std::uint32_t refused = 0;
    convert_input(Backend::reference, desc, source.data(), expected.data(), &refused);
    ASSERT_EQ(refused, 0U);
    // The word is left alone.
    ASSERT_EQ(convert(desc, dst, source, 5), 5U);
    const std::vector<float> got = floats(dst);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double value = static_cast<double>(expected[i]);
      const double bound = half_unit() * std::abs(value) + 2e-6 * std::max(1.0, std::abs(value));
      ASSERT_NEAR(static_cast<double>(got[i]), value, bound) << i;
    }
  }
}

/// A slab of a universe, behind a margin in width.
TEST_P(CudaConversions, MatchTheReferenceOnManyNumbers) {
  Dice dice(2);
  for (const DType source_type : {DType::u16, DType::i16, DType::f32, DType::u8, DType::bf16}) {
    const ConvertDesc desc{.dtype = source_type,
                           .transform = InputTransform::log1p,
                           .channels = 4,
                           .source = Box::whole({40, 40, 64}),
                           .dst = {{0, 0, -1}, {40, 40, 65}}};
    const auto source = random_source(dice, source_type, desc.source.volume() * desc.channels);
    std::vector<float> expected(static_cast<std::size_t>(desc.dst.volume() * desc.channels), -7.0F);
    const DeviceArray dst = activations(expected);
    std::uint32_t refused = 0;
    convert_input(Backend::reference, desc, source.data(), expected.data(), &refused);
    ASSERT_EQ(refused, 0U);
    ASSERT_EQ(convert(desc, dst, source), 0U);
    EXPECT_LT(beyond_rounding(dst, expected), 1e-5);
  }
}

TEST_P(CudaConversions, ReadTheWholeRangeOfSixteenBits) {
  ConvertDesc desc{.transform = InputTransform::log1p,
                   .channels = 1,
                   .source = Box::whole({1, 1, 65536}),
                   .dst = Box::whole({1, 1, 65536})};
  std::vector<std::uint16_t> source(65536);
  std::vector<float> expected;
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<std::uint16_t>(i);
    expected.push_back(static_cast<float>(std::log1p(static_cast<double>(i))));
  }
  const DeviceArray dst = activations(std::vector<float>(source.size()));
  EXPECT_EQ(convert(desc, dst, source), 0U);
  EXPECT_LT(beyond_rounding(dst, expected), 3e-6);
  desc.dtype = DType::i16;
  desc.transform = InputTransform::none;
  EXPECT_EQ(convert(desc, dst, source), 0U);
  EXPECT_EQ(floats(dst)[32768], -32768.0F);
}

TEST_P(CudaConversions, TellWhatIsNotFiniteAndInTheDestination) {
  for (const InputTransform transform : {InputTransform::none, InputTransform::log1p, InputTransform::window}) {
    const ConvertDesc desc{.dtype = DType::f32,
                           .transform = transform,
                           .window = {0, 2},
                           .channels = 1,
                           .source = Box::whole({2, 3, 4}),
                           .dst = Box::whole({2, 3, 4})};
    ConvertDesc cut = desc;
    cut.dst = {{0, 0, 0}, {1, 3, 4}};
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      std::vector<float> source(24, 1.0F);
      const DeviceArray dst = activations(source);
      EXPECT_EQ(convert(desc, dst, source), 0U);
      source[13] = bad;
      EXPECT_EQ(convert(desc, dst, source), 1U) << bad;
      // A value outside the destination is nobody's concern.
      EXPECT_EQ(convert(cut, dst, source), 0U) << bad;
      ConvertDesc narrow = desc;
      narrow.dtype = DType::bf16;
      std::vector<Bf16> half;
      for (const float value : source) half.emplace_back(value);
      EXPECT_EQ(convert(narrow, dst, half), 1U) << bad;
    }
  }
  const ConvertDesc desc{.dtype = DType::i16,
                         .transform = InputTransform::log1p,
                         .channels = 1,
                         .source = Box::whole({1, 1, 3}),
                         .dst = Box::whole({1, 1, 3})};
  const DeviceArray dst = activations({0, 0, 0});
  EXPECT_EQ(convert(desc, dst, std::vector<std::int16_t>{5, 5, -1}), 1U);  // log(0)
}

INSTANTIATE_TEST_SUITE_P(Places, CudaConversions, all_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
