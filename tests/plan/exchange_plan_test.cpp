#include "halograd/plan/exchange_plan.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

TEST(SplitShell, CoversEveryVoxelOnce) {
  const Box own{{2, 0, 5}, {7, 4, 9}};
  const Halo shells[] = {{{1, 0, 0}, {0, 0, 0}}, {{1, 2, 1}, {1, 1, 2}}, {{4, 0, 0}, {3, 0, 0}}, {}};
  for (const Halo& shell : shells) {
    ShellSplit split = split_shell(own, shell);
    std::int64_t voxels = split.interior.volume();
    for (std::size_t i = 0; i < split.shell.size(); ++i) {
      voxels += split.shell[i].volume();
      EXPECT_TRUE(own.contains(split.shell[i]));
      EXPECT_TRUE(split.shell[i].intersect(split.interior).empty());
      for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(split.shell[i].intersect(split.shell[j]).empty());
    }
    EXPECT_EQ(voxels, own.volume());
  }
  EXPECT_EQ(split_shell(own, {{1, 0, 0}, {1, 0, 0}}).interior, (Box{{3, 0, 5}, {6, 4, 9}}));
}

TEST(Site, ReplicasOfACoarserPartHaveNeighboursOfTheirOwn) {
  const Partition halves = Partition::even({8, 8, 8}, {2, 1, 1});
  const Extent grid{4, 1, 1};
  const Site third(halves, grid, {2, 0, 0});
  EXPECT_EQ(third.part(), (Index{1, 0, 0}));
  EXPECT_TRUE(third.leads());
  EXPECT_EQ(third.neighbour(0, -1), 0);
  const Site fourth(halves, grid, {3, 0, 0});
  EXPECT_FALSE(fourth.leads());
  EXPECT_EQ(fourth.neighbour(0, -1), 1);
  EXPECT_EQ(Site::holder(halves, grid, {0, 0, 0}, {3, 0, 0}), 1);
}

TEST(FillPhases, SendCornersOnWithFullExtents) {
  // The middle of 3x3x1 parts of 3 voxels, each of which needs one voxel around.
  const Partition partition = Partition::even({9, 9, 3}, {3, 3, 1});
  const Site site(partition, {3, 3, 1}, {1, 1, 0});
  const auto wide = [&](const Index& part) {
    Box box = partition.box(part);
    for (int i = 0; i < 2; ++i) {
      box.lo[i] = std::max<std::int64_t>(0, box.lo[i] - 1);
      box.hi[i] = std::min<std::int64_t>(9, box.hi[i] + 1);
    }
    return box;
  };
  const Neighbourhood at = neighbourhood(partition, site, wide);
  const auto phases = fill_phases(at, {0, at.wide, 1});
  ASSERT_EQ(phases.size(), 2U);  // the width is not split
  ASSERT_EQ(phases[0].size(), 2U);
  EXPECT_EQ(phases[0][0].peer, 1);
  EXPECT_EQ(phases[0][0].receive_box, (Box{{2, 3, 0}, {3, 6, 3}}));
  EXPECT_EQ(phases[0][0].send_box, (Box{{3, 3, 0}, {4, 6, 3}}));
  EXPECT_EQ(phases[1][1].peer, 5);
  EXPECT_EQ(phases[1][1].receive_box, (Box{{2, 6, 0}, {7, 7, 3}}));  // wide in depth: the corners are in it
  const auto home = return_phases(at, {{0, at.wide, 1}});
  EXPECT_EQ(home[0][1].send_box, phases[1][1].receive_box);  // the last dimension first
  EXPECT_TRUE(home[0][1].receive.front().add);
}

}  // namespace
}  // namespace halograd
