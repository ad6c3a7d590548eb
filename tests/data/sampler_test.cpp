#include "halograd/data/sampler.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace halograd {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers epoch_of(Sampler& sampler, std::int64_t epoch) {
  Numbers all;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch(); ++i) {
    const Numbers batch = sampler.mini_batch(epoch, i);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(Sampler, EachEpochTakesEachSampleOnceInAnOrderOfItsOwn) {
  Numbers samples;
  for (std::int64_t i = 0; i < 50; ++i) samples.push_back(3 * i + 1);
  Sampler sampler(samples, {.batch = 8, .seed = 5});
  std::vector<Numbers> epochs;
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    epochs.push_back(epoch_of(sampler, epoch));
    EXPECT_EQ(sorted(epochs.back()), samples);
    EXPECT_NE(epochs.back(), samples);
    for (std::int64_t before = 0; before < epoch; ++before) {
      EXPECT_NE(epochs[static_cast<std::size_t>(epoch)], epochs[static_cast<std::size_t>(before)]);
    }
  }
  EXPECT_EQ(epoch_of(sampler, 2), epochs[2]);  // asking in any order changes nothing
  Sampler same(samples, {.batch = 7, .seed = 5});
  EXPECT_EQ(epoch_of(same, 4), epochs[4]);  // nor does the batch
  Sampler other(samples, {.batch = 8, .seed = 6});
  EXPECT_NE(epoch_of(other, 0), epochs[0]);
}

TEST(Sampler, KeepsTheLastShortBatch) {
  Sampler sampler(Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {.batch = 4});
  ASSERT_EQ(sampler.batches_per_epoch(), 3);
  EXPECT_EQ(sampler.mini_batch(0, 0).size(), 4U);
  EXPECT_EQ(sampler.mini_batch(0, 1).size(), 4U);
  EXPECT_EQ(sampler.mini_batch(0, 2).size(), 2U);
  EXPECT_EQ(Sampler(Numbers{0, 1, 2, 3}, {.batch = 4}).batches_per_epoch(), 1);
  EXPECT_EQ(Sampler(Numbers{0, 1}, {.batch = 4}).batches_per_epoch(), 1);
}

TEST(Sampler, WithoutShufflingKeepsTheOrder) {
  const Numbers samples{4, 9, 2, 7, 5};
  Sampler sampler(samples, {.batch = 2, .shuffle = false});
  for (const std::int64_t epoch : {0, 1, 7}) EXPECT_EQ(epoch_of(sampler, epoch), samples);
}

TEST(Sampler, RefusesWhatIsNotThere) {
  EXPECT_THROW(Sampler({1, 2}, {.batch = 0}), UsageError);
  Sampler sampler(Numbers{1, 2, 3}, {.batch = 2});
  EXPECT_THROW(static_cast<void>(sampler.mini_batch(0, 2)), UsageError);
  EXPECT_THROW(static_cast<void>(sampler.mini_batch(0, -1)), UsageError);
  EXPECT_THROW(static_cast<void>(sampler.mini_batch(-1, 0)), UsageError);
  Sampler none({}, {.batch = 2});
  EXPECT_EQ(none.batches_per_epoch(), 0);
  EXPECT_THROW(static_cast<void>(none.mini_batch(0, 0)), UsageError);
}

TEST(Permutation, EveryOrderIsEquallyLikely) {
  std::map<Numbers, int> seen;
  constexpr int draws = 24000;
  for (std::uint32_t i = 0; i < draws; ++i) ++seen[permutation(4, random_stream(1, RandomPurpose::shuffle, 0, i))];
  ASSERT_EQ(seen.size(), 24U);
  double chi_squared = 0.0;
  for (const auto& [order, count] : seen) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 49.7);  // 23 degrees of freedom, one in a thousand
}

}  // namespace
}  // namespace halograd
