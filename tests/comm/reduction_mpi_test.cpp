#include "halograd/comm/reduction.hpp"

#include "comm/paths.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/random.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace halograd {
namespace {

using ReductionPaths = testing::BothPaths;

// Counts around the borders between paths, slices and pieces.
const std::vector<std::int64_t> counts = {1, 2, 7, 63, 1000, 4099, 70'001, 300'007};

// Integers that float sums hold exactly for 8 ranks.
float integer_value(int rank, std::int64_t i, int turn) {
  return static_cast<float>((i * 37 + rank * 11 + turn) % 100'003);
}

TEST_P(ReductionPaths, ExactIntegerSums) {
  const auto comm = world();
  SumReduction<float> reduction(comm, counts.back());
  for (int turn = 0; turn < 3; ++turn) {
    for (const auto count : counts) {
      std::vector<float> values(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] = integer_value(comm.rank(), i, turn);
      reduction.run(values.data(), count);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        float expected = 0;
        for (int r = 0; r < comm.size(); ++r) expected += integer_value(r, i, turn);
        wrong += values[static_cast<std::size_t>(i)] != expected;
      }
      EXPECT_EQ(wrong, 0) << count << " values, turn " << turn;
    }
  }
}

template <typename T>
T rough_value(int rank, std::int64_t i) {
  const auto stream = random_stream(3, RandomPurpose::synthetic, static_cast<std::uint32_t>(rank));
  return static_cast<T>((stream.uniform53(static_cast<std::uint64_t>(i)) - 0.5) * (i % 3 == 0 ? 1e6 : 1e-3));
}

template <typename T>
std::int64_t bits_unlike_rank_order(const Communicator& comm, std::int64_t count) {
  SumReduction<T> reduction(comm, count);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = rough_value<T>(comm.rank(), i);
  reduction.run(values.data(), count);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    T expected = rough_value<T>(0, i);
    for (int r = 1; r < comm.size(); ++r) expected += rough_value<T>(r, i);
    wrong += std::memcmp(&values[static_cast<std::size_t>(i)], &expected, sizeof(T)) != 0;
  }
  return wrong;
}

TEST_P(ReductionPaths, SameBitsAsInRankOrder) {
  const auto comm = world();
  for (const std::int64_t count : {200, 40'000}) {
    EXPECT_EQ(bits_unlike_rank_order<float>(comm, count), 0) << count;
    EXPECT_EQ(bits_unlike_rank_order<double>(comm, count), 0) << count;
  }
}

TEST_P(ReductionPaths, RanksThatDoNotContributeGetTheSum) {
  const auto comm = world();
  SumReduction<double> reduction(comm, counts.back());
  // Who counts: only even ranks, only the last one, nobody.
  const std::function<bool(int)> rules[] = {[](int r) { return r % 2 == 0; },
                                            [&](int r) { return r == comm.size() - 1; }, [](int) { return false; }};
  for (const auto& counts_in : rules) {
    for (const auto count : counts) {
      std::vector<double> values(static_cast<std::size_t>(count));
      std::iota(values.begin(), values.end(), 1000.0 * comm.rank());
      reduction.run(values.data(), count, counts_in(comm.rank()));
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        double expected = 0;
        for (int r = 0; r < comm.size(); ++r) expected += counts_in(r) ? 1000.0 * r + static_cast<double>(i) : 0.0;
        wrong += values[static_cast<std::size_t>(i)] != expected;
      }
      EXPECT_EQ(wrong, 0) << count;
    }
  }
}

TEST_P(ReductionPaths, ManySmallOnesInARow) {
  const auto comm = world();
  SumReduction<double> reduction(comm, 64);
  std::int64_t wrong = 0;
  for (int turn = 0; turn < 500; ++turn) {
    std::vector<double> values(64, comm.rank() + 1.0 + turn);
    reduction.run(values.data(), 64);
    const double expected = comm.size() * (comm.size() + 1) / 2.0 + 1.0 * turn * comm.size();
    for (const double value : values) wrong += value != expected;
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(ReductionPaths, TakesMoreThanItWasMadeForInSeveralRuns) {
  const auto comm = world();
  SumReduction<float> reduction(comm, 4);
  std::vector<float> values(11);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(comm.rank() + 1) * static_cast<float>(i);
  reduction.run(values.data(), 11);
  const auto ranks = static_cast<float>(comm.size() * (comm.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], ranks * static_cast<float>(i)) << i;
  EXPECT_NO_THROW(reduction.run(values.data(), 0));
}

INSTANTIATE_TEST_SUITE_P(Comm, ReductionPaths, testing::both_paths, testing::path_name);

}  // namespace
}  // namespace halograd
