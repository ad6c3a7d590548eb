#include "halograd/kernels/region_copy.hpp"

#include "kernels/bf16_support.hpp"
#include "kernels/slices.hpp"

namespace halograd::test {
namespace {

class RegionCopyTest : public BackendTest {};

/// Copies and adds `region` between two buffers, which may be slices, and compares every value of the target.
void expect_moved(Backend backend, Dice& dice, std::int64_t samples, const Box& region, std::int64_t channels,
                  std::uint64_t seed) {
  const Slice from = random_slice(dice, samples, region, channels, seed);
  const Slice before = random_slice(dice, samples, region, channels, seed + 1000);
  const RegionCopy copy{samples, channels, from.layout, before.layout, region};
  const std::vector<float> moved = values_of(samples, region, from);

  Slice to = before;
  copy_region(backend, copy, from.data(), to.data());
  EXPECT_EQ(to.buffer, with_values(samples, region, before, moved).buffer);

  std::vector<float> sums = values_of(samples, region, before);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += moved[i];
  to = before;
  add_region(backend, copy, from.data(), to.data());
  EXPECT_EQ(to.buffer, with_values(samples, region, before, sums).buffer);
}

TEST_P(RegionCopyTest, MovesRandomRegionsAndNothingElse) {
  Dice dice(7);
  for (std::uint64_t round = 0; round < 60; ++round) {
    Box region;
    for (int i = 0; i < 3; ++i) {
      region.lo[i] = dice.between(2, 5);
      region.hi[i] = region.lo[i] + dice.between(1, 4);
    }
    expect_moved(GetParam(), dice, dice.between(1, 3), region, dice.one_of<std::int64_t>({1, 3, 16, 33}), round);
  }
}

TEST_P(RegionCopyTest, MovesRegionsLargeEnoughForAllThreads) {
  Dice dice(8);
  for (std::uint64_t round = 0; round < 4; ++round) {
    expect_moved(GetParam(), dice, 2, {{1, 2, 3}, {14, 15, 16}}, 17, round);
  }
}

TEST_P(RegionCopyTest, MovesNothingOfNoSamplesOrNoVoxels) {
  float value = 5;
  const VoxelLayout one{{{0, 0, 0}, {1, 1, 1}}, 1};
  copy_region(GetParam(), {0, 1, one, one, one.box}, nullptr, &value);
  copy_region(GetParam(), {1, 1, one, one, {{0, 0, 0}, {1, 0, 1}}}, &value, &value);
  EXPECT_EQ(value, 5);
}

TEST(RegionCopyBf16, MovesNumbersAsTheyAreAndRoundsSumsOnce) {
  Dice dice(9);
  for (std::uint64_t round = 0; round < 40; ++round) {
    Box region;
    for (int i = 0; i < 3; ++i) {
      region.lo[i] = dice.between(2, 5);
      region.hi[i] = region.lo[i] + dice.between(1, round % 10 == 0 ? 15 : 4);
    }
    const std::int64_t samples = dice.between(1, 2);
    const std::int64_t channels = dice.one_of<std::int64_t>({1, 3, 16, 33});
    const Slice from = random_bf16_slice(dice, samples, region, channels, round);
    const Slice before = random_bf16_slice(dice, samples, region, channels, round + 1000);
    const RegionCopy copy{samples, channels, from.layout, before.layout, region, DType::bf16};
    Bf16Slice narrow(from);
    Bf16Slice to(before);
    const std::vector<float> moved = values_of(samples, region, from);
    copy_region(Backend::cpu, copy, narrow.data(), to.data());
    EXPECT_EQ(to.floats(), with_values(samples, region, before, moved).buffer);

    std::vector<float> sums = values_of(samples, region, before);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(Bf16(sums[i] + moved[i]));
    to = Bf16Slice(before);
    add_region(Backend::cpu, copy, narrow.data(), to.data());
    EXPECT_EQ(to.floats(), with_values(samples, region, before, sums).buffer);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RegionCopyTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
