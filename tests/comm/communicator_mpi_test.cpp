#include "halograd/comm/communicator.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace halograd {
namespace {

TEST(Communicator, SelfIsOneRankAlone) {
  const auto self = Communicator::self();
  EXPECT_EQ(self.rank(), 0);
  EXPECT_EQ(self.size(), 1);
  EXPECT_TRUE(self.on_one_node());
  self.barrier();
  double values[2] = {1.5, -2.0};
  self.all_reduce_sum(values, 2);
  EXPECT_EQ(values[0], 1.5);
  EXPECT_EQ(values[1], -2.0);
  EXPECT_EQ(self.all_reduce_max(-3.5), -3.5);
  EXPECT_EQ(self.all_reduce_max(std::int64_t{-7}), -7);
  const int sent = 42;
  int received = 0;
  self.all_gather(&sent, sizeof(int), &received);
  EXPECT_EQ(received, 42);
  EXPECT_EQ(self.all_gather("abc"), std::vector<std::string>{"abc"});
  EXPECT_EQ(self.split(3, 1).size(), 1);
  EXPECT_EQ(self.duplicate().size(), 1);
}

TEST(Communicator, SplitsByColorInOrderOfKey) {
  const auto world = Communicator::world();
  const int color = world.rank() % 2;
  const auto part = world.split(color, -world.rank());
  const int members = (world.size() + 1 - color) / 2;
  EXPECT_EQ(part.size(), members);
  const int position = world.rank() / 2;
  EXPECT_EQ(part.rank(), members - 1 - position);
  std::vector<int> ranks(static_cast<std::size_t>(part.size()));
  const int own = world.rank();
  part.all_gather(&own, sizeof(int), ranks.data());
  for (int i = 0; i < part.size(); ++i) EXPECT_EQ(ranks[static_cast<std::size_t>(i)], 2 * (members - 1 - i) + color);
  EXPECT_EQ(part.duplicate().rank(), part.rank());
}

TEST(Communicator, BroadcastsMoreThanAPiece) {
  const auto world = Communicator::world().duplicate();
  const int root = world.size() - 1;
  std::vector<std::uint32_t> values(700'001);
  if (world.rank() == root) std::iota(values.begin(), values.end(), 5U);
  world.broadcast(values.data(), static_cast<std::int64_t>(values.size() * sizeof(std::uint32_t)), root);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != i + 5;
  EXPECT_EQ(wrong, 0);
}

TEST(Communicator, GathersMoreThanAPieceInRankOrder) {
  const auto world = Communicator::world();
  constexpr std::size_t count = 100'003;
  std::vector<std::uint32_t> mine(count);
  std::iota(mine.begin(), mine.end(), 1'000'000U * static_cast<std::uint32_t>(world.rank()));
  std::vector<std::uint32_t> all(count * static_cast<std::size_t>(world.size()), 7);
  world.all_gather(mine.data(), static_cast<std::int64_t>(count * sizeof(std::uint32_t)), all.data());
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) wrong += all[i] != 1'000'000 * (i / count) + i % count;
  EXPECT_EQ(wrong, 0);
}

TEST(Communicator, GathersStringsOfUnlikeLengths) {
  const auto world = Communicator::world();
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 3), static_cast<char>('a' + rank));
  };
  const auto all = world.all_gather(text_of(world.rank()));
  EXPECT_EQ(all.size(), static_cast<std::size_t>(world.size()));
  for (std::size_t r = 0; r < all.size(); ++r) EXPECT_EQ(all[r], text_of(static_cast<int>(r)));
}

TEST(Communicator, SumsInRankOrder) {
  const auto world = Communicator::world();
  // Values for which another order of addition rounds to other bits.
  const auto value_of = [](int rank, int i) { return (rank % 2 == 0 ? 1e16 : -1e16 + 1.0) / (rank + 1) + 0.1 * i; };
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(value_of(world.rank(), i));
  world.all_reduce_sum(values.data(), 100);
  for (int i = 0; i < 100; ++i) {
    double expected = value_of(0, i);
    for (int r = 1; r < world.size(); ++r) expected += value_of(r, i);
    EXPECT_EQ(values[static_cast<std::size_t>(i)], expected) << i;
  }
}

TEST(Communicator, FindsTheLargest) {
  const auto world = Communicator::world();
  EXPECT_EQ(world.all_reduce_max(-1.0 - world.rank()), -1.0);
  EXPECT_EQ(world.all_reduce_max((std::int64_t{1} << 40) + world.rank()), (std::int64_t{1} << 40) + world.size() - 1);
  world.barrier();
}

}  // namespace
}  // namespace halograd
