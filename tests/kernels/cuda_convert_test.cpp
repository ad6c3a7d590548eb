#include "halograd/kernels/cuda/convert_element.hpp"
#include "kernels/convert_cases.hpp"
#include "kernels/software_grid.hpp"

#include <set>

namespace halograd::test {
namespace {

template <typename T>
class CudaConvertTest : public ActivationTest<T> {};
TYPED_TEST_SUITE(CudaConvertTest, ActivationTypes);

/// What launches did.
struct Launches {
  std::uint32_t refused = 0;
  std::set<int> widths;
  std::int64_t numbers = 0;
};

template <typename T>
Launches convert(const ConvertDesc& desc, const void* source, T* dst) {
  Launches launches;
  cuda::with_source_type(desc.dtype, [&]<typename Source>(Source) {
    cuda::convert_units(desc, static_cast<const Source*>(source), dst, &launches.refused,
                        [&]<int width>(const cuda::ConvertUnits<Source, T, width>& body, std::int64_t items) {
                          run_items(body, items);
                          launches.widths.insert(width);
                          launches.numbers += width * items;
                        });
  });
  return launches;
}

TYPED_TEST(CudaConvertTest, MatchesTheReferenceAndWritesNothingElse) {
  Dice dice(1);
  std::set<int> widths;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ConvertDesc desc = random_conversion(dice);
    const auto source = random_source(dice, desc.dtype, desc.source.volume() * desc.channels);
    std::vector<float> expected(static_cast<std::size_t>(desc.dst.volume() * desc.channels), -7.0F);
    std::vector<TypeParam> dst = rounded<TypeParam>(expected);
    std::uint32_t refused = 0;
    convert_input(Backend::reference, desc, source.data(), expected.data(), &refused);
    ASSERT_EQ(refused, 0U);
    desc.dst_type = activation_of<TypeParam>;
    const Launches launches = convert(desc, source.data(), dst.data());
    ASSERT_EQ(launches.refused, 0U);
    widths.insert(launches.widths.begin(), launches.widths.end());
    for (std::size_t i = 0; i < dst.size(); ++i) {
      const double value = static_cast<double>(expected[i]);
      const double bound = half_unit<TypeParam> * std::abs(value) + 2e-6 * std::max(1.0, std::abs(value));
      ASSERT_NEAR(static_cast<double>(static_cast<float>(dst[i])), value, bound) << i;
    }
    // Every number is read and written once.
    EXPECT_EQ(launches.numbers, desc.source.intersect(desc.dst).volume() * desc.channels);
  }
  EXPECT_EQ(widths, (std::set<int>{1, 4, 8}));
}

TYPED_TEST(CudaConvertTest, ReadsTheWholeRangeOfSixteenBits) {
  ConvertDesc desc{.transform = InputTransform::log1p,
                   .channels = 1,
                   .source = Box::whole({1, 1, 65536}),
                   .dst = Box::whole({1, 1, 65536})};
  std::vector<std::uint16_t> source(65536);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint16_t>(i);
  std::vector<TypeParam> dst(source.size());
  EXPECT_EQ(convert(desc, source.data(), dst.data()).refused, 0U);
  std::vector<double> expected;
  expected.reserve(source.size());
  for (const std::uint16_t x : source) expected.push_back(std::log1p(static_cast<double>(x)));
  EXPECT_LT(beyond_rounding(dst, expected), 2e-6);
  desc.dtype = DType::i16;
  desc.transform = InputTransform::none;
  EXPECT_EQ(convert(desc, source.data(), dst.data()).refused, 0U);
  EXPECT_EQ(static_cast<float>(dst[32768]), -32768.0F);
}

TYPED_TEST(CudaConvertTest, TellsWhatIsNotFiniteAndInTheDestination) {
  for (const InputTransform transform : {InputTransform::none, InputTransform::log1p, InputTransform::window}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      const ConvertDesc desc{.dtype = type,
                             .transform = transform,
                             .window = {0, 2},
                             .channels = 1,
                             .source = Box::whole({2, 3, 4}),
                             .dst = Box::whole({2, 3, 4})};
      std::vector<TypeParam> dst(24);
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
        std::vector<float> source(24, 1.0F);
        const auto refused = [&](const ConvertDesc& of) {
          const std::vector<Bf16> half = rounded<Bf16>(source);
          const void* const data =
              type == DType::f32 ? static_cast<const void*>(source.data()) : static_cast<const void*>(half.data());
          return convert(of, data, dst.data()).refused;
        };
        EXPECT_EQ(refused(desc), 0U);
        source[13] = bad;
        EXPECT_EQ(refused(desc), 1U) << bad;
        // A value outside the destination is nobody's concern.
        ConvertDesc cut = desc;
        cut.dst = {{0, 0, 0}, {1, 3, 4}};
        EXPECT_EQ(refused(cut), 0U);
      }
    }
  }
  const ConvertDesc desc{.dtype = DType::i16,
                         .transform = InputTransform::log1p,
                         .channels = 1,
                         .source = Box::whole({1, 1, 3}),
                         .dst = Box::whole({1, 1, 3})};
  const std::vector<std::int16_t> counts{5, 5, -1};  // log(0)
  std::vector<TypeParam> dst(3);
  EXPECT_EQ(convert(desc, counts.data(), dst.data()).refused, 1U);
}

/// The case that matters: a universe's four redshifts, dense or behind a margin in width.
TEST(CudaConvert, TakesUniversesInWholeAccesses) {
  ConvertDesc desc{.channels = 4, .source = Box::whole({4, 4, 16}), .dst = Box::whole({4, 4, 16})};
  std::vector<std::uint16_t> source(1024);
  std::vector<float> dst(2048);
  EXPECT_EQ(convert(desc, source.data(), dst.data()).widths, std::set<int>{8});
  desc.dst = {{0, 0, -1}, {4, 4, 17}};
  EXPECT_EQ(convert(desc, source.data(), dst.data()).widths, std::set<int>{8});
  std::vector<Bf16> half(2048);
  EXPECT_EQ(convert(desc, source.data(), half.data()).widths, std::set<int>{4});
  desc.flip[2] = true;
  EXPECT_EQ(convert(desc, source.data(), half.data()).widths, std::set<int>{4});
}

}  // namespace
}  // namespace halograd::test
