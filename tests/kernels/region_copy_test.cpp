#include "halograd/kernels/region_copy.hpp"

#include "kernels/support.hpp"

namespace halograd::test {
namespace {

/// The values of `region` in a buffer [N, box, C], in order.
std::vector<float> values_of(const Box& region, const Box& box, const RegionCopy& copy,
                             const std::vector<float>& buffer) {
  std::vector<float> values;
  const Extent extent = box.extent();
  for (std::int64_t n = 0; n < copy.samples; ++n) {
    for (std::int64_t d = region.lo.d; d < region.hi.d; ++d) {
      for (std::int64_t h = region.lo.h; h < region.hi.h; ++h) {
        for (std::int64_t w = region.lo.w; w < region.hi.w; ++w) {
          const std::int64_t row = (n * extent.d + d - box.lo.d) * extent.h + h - box.lo.h;
          for (std::int64_t c = 0; c < copy.channels; ++c) {
            values.push_back(buffer[static_cast<std::size_t>((row * extent.w + w - box.lo.w) * copy.channels + c)]);
          }
        }
      }
    }
  }
  return values;
}

RegionCopy random_copy(Dice& dice) {
  RegionCopy copy{.samples = dice.between(1, 3), .channels = dice.one_of<std::int64_t>({1, 3, 16})};
  for (int i = 0; i < 3; ++i) {
    copy.region.lo[i] = dice.between(2, 5);
    copy.region.hi[i] = copy.region.lo[i] + dice.between(1, 4);
    for (Box* box : {&copy.from, &copy.to}) {
      box->lo[i] = copy.region.lo[i] - dice.between(0, 2);
      box->hi[i] = copy.region.hi[i] + dice.between(0, 3);
    }
  }
  return copy;
}

class RegionCopyTest : public BackendTest {};

TEST_P(RegionCopyTest, MovesRandomRegionsAndNothingElse) {
  Dice dice(7);
  for (std::uint64_t round = 0; round < 40; ++round) {
    const RegionCopy copy = random_copy(dice);
    const auto from = random_values(copy.samples * copy.channels * copy.from.volume(), round);
    const auto before = random_values(copy.samples * copy.channels * copy.to.volume(), round + 100);
    const auto expected = values_of(copy.region, copy.from, copy, from);

    std::vector<float> to = before;
    copy_region(GetParam(), copy, from.data(), to.data());
    EXPECT_EQ(values_of(copy.region, copy.to, copy, to), expected);
    std::int64_t changed = 0;
    for (std::size_t i = 0; i < to.size(); ++i) changed += to[i] != before[i] ? 1 : 0;
    EXPECT_EQ(changed, static_cast<std::int64_t>(expected.size()));

    std::vector<float> sums = values_of(copy.region, copy.to, copy, before);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += expected[i];
    to = before;
    add_region(GetParam(), copy, from.data(), to.data());
    EXPECT_EQ(values_of(copy.region, copy.to, copy, to), sums);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RegionCopyTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
