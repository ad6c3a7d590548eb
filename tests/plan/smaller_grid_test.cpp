#include "halograd/plan/smaller_grid.hpp"
#include "halograd/models/cosmoflow.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

const RankMemory memory{.optimizer_slots = 2, .input_slots = 1};

std::int64_t needed(const Network& network, const ProcessGrid& grid, std::int64_t rank) {
  return memory.of(compile(network, {.grid = grid, .rank = rank}));
}

TEST(SmallestGridThatFits, HasTheFewestRanksThatDo) {
  const Network network = cosmoflow({.width = 128});
  const std::int64_t whole = needed(network, {}, 0);
  const auto half = smallest_grid_that_fits(network, {}, memory, whole - 1);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->grid.size(), 2);
  EXPECT_LT(half->bytes, whole);
  EXPECT_EQ(half->bytes, needed(network, half->grid, half->grid.depth / 2));
  // One byte less than two ranks need takes four.
  const auto quarter = smallest_grid_that_fits(network, {}, memory, half->bytes - 1);
  ASSERT_TRUE(quarter);
  EXPECT_EQ(quarter->grid.size(), 4);
  EXPECT_LT(quarter->bytes, half->bytes);
}

TEST(SmallestGridThatFits, KeepsTheGroupsAndIsFiner) {
  const Network network = cosmoflow({.width = 64});
  const CompileOptions options{.grid = {2, 2, 1, 1}, .batch = 4};
  const auto finer = smallest_grid_that_fits(network, options, memory, std::int64_t{1} << 40);
  ASSERT_TRUE(finer);
  EXPECT_EQ(finer->grid.data, 2);
  EXPECT_EQ(finer->grid.spatial().volume(), 4);
}

TEST(SmallestGridThatFits, WeightsAloneCanBeTooMuch) {
  EXPECT_FALSE(smallest_grid_that_fits(cosmoflow({.width = 64}), {}, memory, 100 << 20));
}

TEST(KernelTraits, DecideHowBuffersLie) {
  const Network network = cosmoflow({.width = 64});
  const Plan on_gpu = compile(network, {.traits = kernel_traits(Backend::cuda)});
  const Plan on_processor = compile(network, {.traits = kernel_traits(Backend::cpu)});
  bool below_a_page = false;
  for (const BufferPlan& buffer : on_gpu.buffers) {
    EXPECT_EQ(buffer.offset % 256, 0) << buffer.name;
    below_a_page = below_a_page || buffer.offset % 4096 != 0;
  }
  EXPECT_TRUE(below_a_page);
  for (const BufferPlan& buffer : on_processor.buffers) EXPECT_EQ(buffer.offset % 4096, 0) << buffer.name;
  EXPECT_LT(on_gpu.arena_bytes, on_processor.arena_bytes);
}

}  // namespace
}  // namespace halograd
