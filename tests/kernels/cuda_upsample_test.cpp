#include "halograd/kernels/cuda/upsample_element.hpp"
#include "kernels/software_grid.hpp"
#include "kernels/upsample_cases.hpp"

#include <algorithm>

namespace halograd::test {
namespace {

template <typename T>
class CudaUpsampleTest : public ActivationTest<T> {};
TYPED_TEST_SUITE(CudaUpsampleTest, ActivationTypes);

template <typename T>
void round_to(Slice& slice) {
  slice.buffer = widened(rounded<T>(slice.buffer));
}

/// Widths that a launch had.
template <template <typename, int> typename Direction, typename T>
int run(const UpsampleDesc& desc, const Box& box, const Slice& from, std::vector<T>& to, std::int64_t shift) {
  const std::vector<T> source = rounded<T>(from.buffer);
  int used = 0;
  cuda::upsample_units<Direction>(desc, box, source.data() + from.shift, to.data() + shift,
                                  [&]<int width>(const Direction<T, width>& body, std::int64_t items) {
                                    run_items(body, items);
                                    used = width;
                                  });
  return used;
}

TYPED_TEST(CudaUpsampleTest, MatchesTheReferenceOnRandomPartsAndWritesNothingElse) {
  Dice dice(5);
  std::array<int, 2> widths{};
  for (std::uint64_t round = 0; round < 120; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    UpsampleDesc desc = random_upsampling(dice, round);
    const Box needed = upsample_window(desc.kind, desc.factor).input_needed(desc.out, desc.in_extent);
    const bool dense = round % 3 != 0;
    Slice x = random_buffer(dice, desc, needed, round, dense);
    round_to<TypeParam>(x);
    // What lies around the inputs that are needed must not be read.
    const auto values = values_of(desc.samples, needed, x);
    std::fill(x.buffer.begin(), x.buffer.end(), std::numeric_limits<float>::quiet_NaN());
    x = with_values(desc.samples, needed, x, values);
    Slice expected = random_buffer(dice, desc, desc.out, round + 1, dense);
    round_to<TypeParam>(expected);
    desc.src = x.layout;
    desc.dst = expected.layout;
    std::vector<TypeParam> y = rounded<TypeParam>(expected.buffer);
    const int width = run<cuda::UpsampleForward>(desc, desc.out, x, y, expected.shift);
    ++widths[width > 1 ? 1 : 0];
    upsample(Backend::reference, desc, x.data(), expected.data());
    ASSERT_LT(beyond_rounding(y, expected.buffer), 1e-6);
  }
  // Both of them are at work here.
  EXPECT_GT(widths[0], 10);
  EXPECT_GT(widths[1], 10);
}

TYPED_TEST(CudaUpsampleTest, BackwardMatchesTheReference) {
  Dice dice(6);
  for (std::uint64_t round = 0; round < 120; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    UpsampleDesc desc = random_upsampling(dice, round);
    const Box needed = upsample_window(desc.kind, desc.factor).input_needed(desc.out, desc.in_extent);
    const bool dense = round % 3 != 0;
    Slice dy = random_buffer(dice, desc, desc.out, round, dense);
    round_to<TypeParam>(dy);
    Slice expected = random_buffer(dice, desc, needed, round + 1, dense);
    round_to<TypeParam>(expected);
    desc.src = expected.layout;
    desc.dst = dy.layout;
    std::vector<TypeParam> dx = rounded<TypeParam>(expected.buffer);
    run<cuda::UpsampleBackward>(desc, desc.src.box, dy, dx, expected.shift);
    upsample_backward(Backend::reference, desc, dy.data(), expected.data());
    // Sums of up to 8³ numbers, in float.
    ASSERT_LT(beyond_rounding(dx, expected.buffer), 2e-5);
  }
}

TEST(CudaUpsample, LargeVolumesAreSeveralLaunchesThatShareThem) {
  Dice dice(7);
  for (int round = 0; round < 100; ++round) {
    const Index lo{dice.between(-2, 2), dice.between(-2, 2), dice.between(-2, 2)};
    const Box box{lo, {lo.d + dice.between(1, 4), lo.h + dice.between(1, 4), lo.w + dice.between(1, 4)}};
    const std::int64_t samples = dice.between(1, 3);
    const std::int64_t units = dice.between(1, 3);
    const std::int64_t limit = dice.between(units, 60);
    Slice seen = dense_slice(samples, box, units);
    cuda::for_each_upsample_part(0, samples, box, units, limit, [&](const cuda::UpsampleItems& items) {
      ASSERT_LE(items.items, limit);
      for (std::uint32_t i = 0; i < items.items; ++i) {
        const auto item = items.item(i);
        ASSERT_TRUE(box.contains(Index{item.at[0], item.at[1], item.at[2]}));
        seen.at(item.sample, {item.at[0], item.at[1], item.at[2]}, item.unit) += 1;
      }
    });
    ASSERT_EQ(seen.buffer, std::vector<float>(seen.buffer.size(), 1.0F));
  }
}

}  // namespace
}  // namespace halograd::test
