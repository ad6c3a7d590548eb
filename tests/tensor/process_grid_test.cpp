#include "halograd/tensor/process_grid.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

TEST(ProcessGrid, LeftOverRanksAreDataGroups) {
  const ProcessGrid grid = ProcessGrid::parse("2x1x3", 12);
  EXPECT_EQ(grid.data, 2);
  EXPECT_EQ(grid.spatial(), (Extent{2, 1, 3}));
  EXPECT_EQ(grid.spatial_size(), 6);
  EXPECT_EQ(grid.size(), 12);
  EXPECT_EQ(grid.spatial_name(), "2x1x3");
}

TEST(ProcessGrid, AGroupsRanksFollowEachOtherWidthFastest) {
  const ProcessGrid grid{.data = 2, .depth = 2, .height = 2, .width = 3};
  EXPECT_EQ(grid.place(0), (GridPlace{0, {0, 0, 0}}));
  EXPECT_EQ(grid.place(2), (GridPlace{0, {0, 0, 2}}));
  EXPECT_EQ(grid.place(3), (GridPlace{0, {0, 1, 0}}));
  EXPECT_EQ(grid.place(6), (GridPlace{0, {1, 0, 0}}));
  EXPECT_EQ(grid.place(12), (GridPlace{1, {0, 0, 0}}));
  EXPECT_EQ(grid.place(23), (GridPlace{1, {1, 1, 2}}));
  for (std::int64_t rank = 0; rank < grid.size(); ++rank) EXPECT_EQ(grid.rank(grid.place(rank)), rank);
}

TEST(ProcessGrid, RefusesWhatIsNoGrid) {
  for (const char* text : {"", "2", "2x2", "2x2x2x2", "2x2x", "x2x2", "0x1x1", "-1x1x1", "axbxc", "2x1x1 ", " 2x1x1",
                           "2,1,1", "2X1X1", "99999999999999999999x1x1", "1x1x1.5"}) {
    EXPECT_THROW(ProcessGrid::parse(text, 8), UsageError) << "'" << text << "'";
  }
}

TEST(ProcessGrid, MustDivideTheRanks) {
  EXPECT_THROW(ProcessGrid::parse("3x1x1", 4), UsageError);
  EXPECT_THROW(ProcessGrid::parse("2x2x2", 4), UsageError);
  EXPECT_EQ(ProcessGrid::parse("2x2x1", 4).data, 1);
}

TEST(GroupSamples, SharesAMiniBatchThatNeedNotDivide) {
  const auto range = [](std::int64_t batch, std::int64_t groups, std::int64_t group) {
    const SampleRange samples = group_samples(batch, groups, group);
    return std::pair{samples.first, samples.count};
  };
  using Range = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(range(7, 3, 0), Range(0, 3));
  EXPECT_EQ(range(7, 3, 1), Range(3, 2));
  EXPECT_EQ(range(7, 3, 2), Range(5, 2));
  EXPECT_EQ(range(1, 2, 0), Range(0, 1));
  EXPECT_EQ(range(1, 2, 1), Range(1, 0));
}

}  // namespace
}  // namespace halograd
