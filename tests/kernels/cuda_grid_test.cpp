#include "halograd/kernels/cuda/flat_range.hpp"
#include "halograd/kernels/cuda/nest.hpp"
#include "kernels/software_grid.hpp"

namespace halograd::test {
namespace {

TEST(Divider, DividesLikeDivision) {
  constexpr std::uint32_t most = (1U << 31) - 1;
  Dice dice(1);
  const auto check = [](std::uint32_t dividend, std::uint32_t divisor) {
    const cuda::Divider by(divisor);
    std::uint32_t rest_of = dividend;
    const std::uint32_t rest = by.split(rest_of);
    ASSERT_EQ(rest_of, dividend / divisor) << dividend << " / " << divisor;
    ASSERT_EQ(rest, dividend % divisor) << dividend << " % " << divisor;
  };
  for (std::uint32_t divisor = 1; divisor <= 300; ++divisor) {
    for (std::uint32_t dividend = 0; dividend < 1000; ++dividend) check(dividend, divisor);
  }
  for (int round = 0; round < 20000; ++round) {
    const auto divisor = static_cast<std::uint32_t>(dice.between(1, most >> dice.between(0, 30)));
    const auto multiple = static_cast<std::uint32_t>(dice.between(0, most / divisor)) * divisor;
    for (const std::uint32_t dividend :
         {multiple, multiple > 0 ? multiple - 1 : 0, most, static_cast<std::uint32_t>(dice.between(0, most))}) {
      check(dividend, divisor);
    }
  }
}

/// All places of loops, outermost first, by plain counting.
std::vector<std::array<std::int64_t, 2>> places_of(const std::vector<cuda::Loop>& loops) {
  std::vector<std::array<std::int64_t, 2>> places{{0, 0}};
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    std::vector<std::array<std::int64_t, 2>> inner;
    for (const auto& [from, to] : places) {
      for (std::int64_t i = 0; i < loop->count; ++i) inner.push_back({from + i * loop->from, to + i * loop->to});
    }
    places = inner;
  }
  return places;
}

TEST(Nest, VisitsThePlacesOfItsLoopsInOrder) {
  Dice dice(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<cuda::Loop> loops(5);
    std::int64_t from = 1;
    std::int64_t to = 1;
    for (cuda::Loop& loop : loops) {
      // Often a multiple of what is inside, so that loops join.
      from = dice.between(0, 1) == 0 ? from : from + dice.between(0, 5);
      to = dice.between(0, 1) == 0 ? to : to + dice.between(-5, 5);
      loop = {dice.between(1, 4), from, to};
      from *= loop.count;
      to *= loop.count;
    }
    const cuda::Loops all{loops[0], loops[1], loops[2], loops[3], loops[4]};
    const auto expected = places_of(loops);
    ASSERT_EQ(all.items(), static_cast<std::int64_t>(expected.size()));
    // However small the launches are: their items follow each other.
    for (const std::int64_t limit : {cuda::most_items, std::int64_t{50}, std::int64_t{1}}) {
      std::size_t next = 0;
      all.for_each_part(limit, [&](const cuda::Loops& part, std::int64_t from_offset, std::int64_t to_offset) {
        const cuda::Nest nest(part);
        for (std::uint32_t item = 0; item < nest.items(); ++item) {
          const cuda::Nest::Place place = nest.place(item);
          ASSERT_LT(next, expected.size());
          ASSERT_EQ(place.from + from_offset, expected[next][0]);
          ASSERT_EQ(place.to + to_offset, expected[next][1]);
          ++next;
        }
      });
      ASSERT_EQ(next, expected.size());
    }
  }
}

TEST(Loops, JoinWhatIsOneRunAndNothingElse) {
  EXPECT_EQ((cuda::Loops{{8, 1, 1}, {10, 8, 8}, {5, 80, 80}}).depth(), 1);
  EXPECT_EQ((cuda::Loops{{8, 1, 1}, {10, 8, 8}, {5, 96, 80}}).depth(), 2);
  EXPECT_EQ((cuda::Loops{{1, 1, 1}, {10, 8, 16}, {1, 3, 3}, {5, 80, 160}}).depth(), 1);
  EXPECT_EQ((cuda::Loops{{8, 1, 1}, {10, -8, 8}, {5, -80, 80}}).depth(), 2);
  EXPECT_EQ((cuda::Loops{{1, 1, 1}, {1, 9, 9}}).items(), 1);
  EXPECT_EQ((cuda::Loops{{8, 1, 1}, {0, 8, 8}}).items(), 0);
}

TEST(Loops, CountMoreItemsThanALaunchHas) {
  const cuda::Loops loops{{std::int64_t{1} << 20, 1, 1}, {3000, std::int64_t{1} << 21, std::int64_t{1} << 20}};
  std::int64_t items = 0;
  std::int64_t last = -1;
  loops.for_each_part(cuda::most_items, [&](const cuda::Loops& part, std::int64_t from, std::int64_t) {
    EXPECT_LE(part.items(), cuda::most_items);
    EXPECT_GT(from, last);
    last = from + (part.items() >> 20 << 21) - 1;
    items += part.items();
  });
  EXPECT_EQ(items, std::int64_t{3000} << 20);
  EXPECT_EQ(last, (std::int64_t{3000} << 21) - 1);
}

TEST(FlatRange, HasEveryNumberOnceAndPacketsOnlyWhereAllAreAligned) {
  alignas(64) static std::array<float, 256> memory;
  Dice dice(3);
  for (int round = 0; round < 500; ++round) {
    const std::int64_t count = dice.between(0, 70);
    const std::int64_t shift = dice.between(0, 5);
    const std::int64_t other = dice.between(0, 1) == 0 ? shift + 4 * dice.between(0, 2) : dice.between(0, 5);
    const cuda::FlatRange<4> range(count, {{memory.data() + shift, 4}, {memory.data() + other, 4}});
    std::vector<int> seen(static_cast<std::size_t>(count));
    std::int64_t packets = 0;
    for (std::int64_t item = 0; item < range.items(); ++item) {
      const std::int64_t at = range.element(item);
      const std::int64_t size = range.is_packet(item) ? 4 : 1;
      ASSERT_LE(at + size, count);
      for (std::int64_t i = at; i < at + size; ++i) ++seen[static_cast<std::size_t>(i)];
      if (size == 1) continue;
      ++packets;
      ASSERT_TRUE(cuda::aligned(memory.data() + shift + at, 16) && cuda::aligned(memory.data() + other + at, 16));
    }
    ASSERT_EQ(seen, std::vector<int>(static_cast<std::size_t>(count), 1));
    const std::int64_t head = (4 - shift % 4) % 4;
    const bool together = (shift - other) % 4 == 0 && head <= count;
    ASSERT_EQ(packets, together ? (count - head) / 4 : 0);
  }
}

TEST(Grid, GivesEveryItemToOneThread) {
  for (const std::int64_t items : {0, 1, 255, 256, 257, 100000}) {
    std::vector<int> seen(static_cast<std::size_t>(items));
    const auto see = [&](std::int64_t item) { ++seen[static_cast<std::size_t>(item)]; };
    run_items(see, items);
    run_walking(see, items);
    struct Seeing {
      std::vector<int>& seen;
      std::uint32_t load(std::uint32_t item) const { return item; }
      void store(std::uint32_t item) const { ++seen[item]; }
    };
    run_moves<1>(Seeing{seen}, items);
    run_moves<4>(Seeing{seen}, items);
    EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(items), 4));
  }
  EXPECT_EQ(cuda::walking_grid(std::int64_t{1} << 40).blocks, cuda::filling_blocks);
  EXPECT_EQ(cuda::grid_for(cuda::most_items).blocks, cuda::most_items / cuda::block_threads);
}

TEST(Reduction, PiecesShareEveryItem) {
  Dice dice(4);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t items = dice.between(0, 1 << 18);
    const std::int64_t ranges = dice.between(1, 2000);
    const std::int64_t values = dice.between(1, 770);
    const std::int64_t capacity = ranges * values * dice.between(1, 100);
    const std::int64_t pieces = cuda::pieces_for(items, ranges, values, capacity);
    ASSERT_GE(pieces, 1);
    ASSERT_LE(pieces * ranges * values, capacity);
    ASSERT_EQ(cuda::piece_begin(items, 0, pieces), 0);
    ASSERT_EQ(cuda::piece_begin(items, pieces, pieces), items);
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t length = cuda::piece_begin(items, i + 1, pieces) - cuda::piece_begin(items, i, pieces);
      ASSERT_GE(length, items / pieces);
      ASSERT_LE(length, items / pieces + 1);
    }
  }
}

TEST(Reduction, MergesCommonValuesOverAllRangesAndOthersByRange) {
  // [2 ranges, 3 pieces, 4 values], of which two are common.
  std::vector<double> partial(24);
  for (std::size_t i = 0; i < partial.size(); ++i) partial[i] = static_cast<double>(i * i);
  const cuda::PieceSums pieces{partial.data(), 2, 3, 4, 2};
  ASSERT_EQ(pieces.results(), 6);
  std::vector<double> sums(6);
  run_merge(pieces, sums.data());
  std::vector<double> expected(6);
  for (std::size_t range = 0; range < 2; ++range) {
    for (std::size_t piece = 0; piece < 3; ++piece) {
      for (std::size_t value = 0; value < 4; ++value) {
        expected[value < 2 ? value : 2 * range + value] += partial[(range * 3 + piece) * 4 + value];
      }
    }
  }
  EXPECT_EQ(sums, expected);
}

}  // namespace
}  // namespace halograd::test
