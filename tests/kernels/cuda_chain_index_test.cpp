#include "halograd/core/error.hpp"
#include "halograd/kernels/cuda/chain_check.hpp"
#include "halograd/kernels/cuda/chain_work.hpp"
#include "kernels/chain_support.hpp"

#include <map>
#include <set>
#include <tuple>

namespace halograd::test {
namespace {

namespace chain = cuda::chain;

/// A box of 1 to 9 voxels a side, somewhere in a volume of up to 40.
Box random_box(Dice& dice) {
  Box box;
  for (int i = 0; i < 3; ++i) {
    box.lo[i] = dice.between(0, 30);
    box.hi[i] = box.lo[i] + dice.between(1, 9);
  }
  return box;
}

/// A part of a random pool's chain.
ChainDesc random_chain(Dice& dice) {
  const Window halve{Extent::cube(2), Extent::cube(2), {}};
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  const Window mixed{{2, 3, 4}, {1, 2, 3}, {0, 1, 2}};
  ChainCase test{.samples = dice.between(1, 3), .channels = dice.between(1, 40)};
  for (int i = 0; i < 3; ++i) test.extent[i] = dice.between(6, 14);
  test.pool = PoolKind::average;
  test.window = dice.one_of<Window>({halve, centred, mixed});
  test.per_sample = dice.between(0, 1) == 1;
  const Partition input = Partition::even(test.extent, {2, 2, 2});
  return part_chain(test, input, {dice.between(0, 1), dice.between(0, 1), dice.between(0, 1)}, dice.between(0, 1));
}

Index index_of(const chain::Point& at) {
  return {at.d, at.h, at.w};
}

TEST(CudaChainIndex, DivisorsDivide) {
  Dice dice(1);
  for (int i = 0; i < 300; ++i) {
    const auto by = static_cast<std::uint32_t>(i < 100 ? i + 1 : dice.between(1, 0x7FFFFFFF));
    const chain::Divisor divisor(by);
    EXPECT_EQ(divisor.value(), by);
    for (int j = 0; j < 200; ++j) {
      const auto near = static_cast<std::uint32_t>(dice.between(0, 0x7FFFFFFF / by)) * by;  // quotients change here
      for (const std::uint32_t n : {near - (near > 0 ? 1U : 0U), near, static_cast<std::uint32_t>(j), 0x7FFFFFFFU}) {
        ASSERT_EQ(divisor.quotient(n), n / by) << n << " by " << by;
      }
    }
  }
}

TEST(CudaChainIndex, PlacementsAreLayouts) {
  Dice dice(2);
  for (int i = 0; i < 50; ++i) {
    const Box box = random_box(dice);
    const VoxelLayout layout{box, dice.between(1, 70)};
    const chain::Placement placement(chain::region_of(box), static_cast<std::int32_t>(layout.pitch));
    for (std::int32_t n = 0; n < 3; ++n) {
      for_each_index(box, [&](const Index& at) {
        ASSERT_EQ(placement.offset(n, chain::point_of(at)), layout.offset(n, at));
        const chain::Point before{static_cast<std::int32_t>(at.d), static_cast<std::int32_t>(at.h),
                                  static_cast<std::int32_t>(at.w) - 1};
        ASSERT_EQ(placement.offset(n, before), layout.offset(n, at) - layout.pitch);
      });
    }
  }
}

TEST(CudaChainIndex, OffsetsGoBeyond32Bits) {
  // The whole of CosmoFlow's conv1 at 512³ with 32 channels, and a slab deep inside a huge volume.
  const VoxelLayout large{Box::whole(Extent::cube(512)), 32};
  const chain::Placement placement(chain::region_of(large.box), 32);
  EXPECT_EQ(placement.offset(1, {511, 511, 511}), large.offset(1, {511, 511, 511}));
  EXPECT_EQ(placement.offset(1, {511, 511, 511}), (std::int64_t{1} << 33) - 32);
  const VoxelLayout deep{{{4000, 0, 0}, {4008, 4096, 4096}}, 16};
  EXPECT_EQ(chain::Placement(chain::region_of(deep.box), 16).offset(0, {4007, 4095, 4094}),
            deep.offset(0, {4007, 4095, 4094}));
}

TEST(CudaChainIndex, EveryVoxelOfAWindowHasOneSource) {
  Dice dice(3);
  int from_faces = 0;
  for (int i = 0; i < 60; ++i) {
    const ChainDesc desc = random_chain(dice);
    const chain::Geometry g = chain::geometry_of(desc);
    for_each_index(desc.out, [&](const Index& out) {
      const chain::Region window = chain::window_of(g, chain::point_of(out));
      EXPECT_EQ(window,
                chain::region_of(desc.window.input_needed({out, {out.d + 1, out.h + 1, out.w + 1}}, desc.in_extent)));
      for_each_index({index_of(window.lo), index_of(window.hi)}, [&](const Index& at) {
        const int side = chain::side_of(g, chain::point_of(at));
        if (side == chain::own_side) {
          EXPECT_TRUE(desc.in.contains(at));
          return;
        }
        ++from_faces;
        EXPECT_TRUE(face_voxels(desc, side / 2, side % 2 == 1).contains(at));
        EXPECT_EQ(g.faces[side], chain::region_of(face_voxels(desc, side / 2, side % 2 == 1)));
        EXPECT_EQ(g.returned[side], chain::region_of(returned_voxels(desc, side / 2, side % 2 == 1)));
      });
    });
  }
  EXPECT_GT(from_faces, 1000);
}

TEST(CudaChainIndex, ReadersAreTheOutputsThatLook) {
  Dice dice(4);
  for (int i = 0; i < 60; ++i) {
    const ChainDesc desc = random_chain(dice);
    const chain::Geometry g = chain::geometry_of(desc);
    // Which outputs look at each voxel, and at what place of their windows, asked of the outputs.
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, int> looks;
    for_each_index(desc.out.intersect(desc.dst.box), [&](const Index& out) {
      std::int32_t place = 0;
      for_each_index(Box::whole(desc.window.kernel), [&](const Index& tap) {
        Index at;
        for (int j = 0; j < 3; ++j) at[j] = out[j] * desc.window.stride[j] - desc.window.padding[j] + tap[j];
        EXPECT_EQ(chain::place_in_window(g, chain::point_of(out), chain::point_of(at)), place++);
        if (!Box::whole(desc.in_extent).contains(at)) return;
        ++looks[{at.d, at.h, at.w}];
        const chain::Region readers = chain::readers_of(g, chain::point_of(at));
        EXPECT_TRUE(readers.contains(chain::point_of(out)));
      });
    });
    for_each_index(desc.in, [&](const Index& at) {
      const chain::Region readers = chain::readers_of(g, chain::point_of(at));
      EXPECT_EQ(readers.size(0) * readers.size(1) * readers.size(2), (looks[{at.d, at.h, at.w}]));
    });
  }
}

TEST(CudaChainIndex, BlocksShareTheCellsOut) {
  Dice dice(5);
  for (int i = 0; i < 200; ++i) {
    const ChainDesc desc = random_chain(dice);
    const chain::Geometry g = chain::geometry_of(desc);
    const std::int32_t lanes = desc.channels % 4 == 0 ? 4 : 1;
    const auto width = static_cast<std::int32_t>(dice.between(1, 2));
    const auto resident = static_cast<std::int32_t>(dice.between(1, 300));
    const chain::Work work =
        chain::deal(g, g.in, width, lanes, resident, static_cast<std::int32_t>(dice.between(1, 8)));
    EXPECT_LE(work.blocks(), std::max<std::int64_t>(resident, std::int64_t{work.sets} * work.shape.slices));
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>, int> taken;
    for (std::uint32_t block = 0; block < work.blocks(); ++block) {
      const chain::Share share = chain::share_of(work, block);
      for (std::uint32_t thread = 0; thread < cuda::block_threads; ++thread) {
        const chain::Stand stand = chain::stand_of(work.shape, share.slice, thread);
        if (!stand.works) continue;
        EXPECT_LT(stand.channel, g.channels);
        for (std::uint32_t item = share.first + static_cast<std::uint32_t>(stand.row); item < work.items;
             item += share.step) {
          const chain::Cell cell = chain::cell_of(work, share.set, item);
          EXPECT_EQ(cell.at.w % width, 0);
          EXPECT_EQ(share.set, g.per_sample ? cell.n : 0);
          for (std::int32_t w = cell.at.w; w < cell.at.w + width; ++w) {
            if (g.in.contains({cell.at.d, cell.at.h, w})) ++taken[{cell.n, cell.at.d, cell.at.h, w, stand.channel}];
          }
        }
      }
    }
    const std::int64_t all = desc.samples * desc.in.volume() * desc.channels / lanes;
    EXPECT_EQ(static_cast<std::int64_t>(taken.size()), all);
    for (const auto& [place, times] : taken) ASSERT_EQ(times, 1);
  }
}

TEST(CudaChainIndex, TilesShareTheOutputsOut) {
  Dice dice(6);
  std::set<std::int32_t> runs;
  for (int i = 0; i < 200; ++i) {
    const ChainDesc desc = random_chain(dice);
    const chain::Geometry g = chain::geometry_of(desc);
    const std::int32_t lanes = desc.channels % 4 == 0 ? 4 : 1;
    const chain::Tiling tiling = chain::tile(g, g.out, lanes, dice.between(1, 100));
    runs.insert(tiling.run);
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>, int> taken;
    for (std::uint32_t block = 0; block < tiling.blocks(); ++block) {
      for (std::uint32_t thread = 0; thread < cuda::block_threads; ++thread) {
        const chain::Run run = chain::run_of(tiling, block, thread);
        for (std::int32_t d = run.first.d; d < run.end; ++d) {
          EXPECT_TRUE(g.out.contains({d, run.first.h, run.first.w}));
          ++taken[{run.n, d, run.first.h, run.first.w, run.stand.channel}];
        }
      }
    }
    const std::int64_t all = desc.samples * desc.out.volume() * desc.channels / lanes;
    EXPECT_EQ(static_cast<std::int64_t>(taken.size()), all);
    for (const auto& [place, times] : taken) ASSERT_EQ(times, 1);
  }
  EXPECT_GE(runs.size(), 3U);
}

TEST(CudaChainIndex, TilesOfCosmoFlowAreSquareAndBusy) {
  // conv1 of CosmoFlow at 128³ on 132 processors with two blocks each: 8×8 outputs of 4 vectors a block.
  ChainDesc desc;
  desc.samples = 1;
  desc.channels = 16;
  desc.in_extent = desc.out_extent = Extent::cube(64);
  desc.in = desc.out = desc.src.box = desc.dst.box = Box::whole(desc.out_extent);
  const chain::Geometry g = chain::geometry_of(desc);
  const chain::Tiling tiling = chain::tile(g, g.out, 4, 264);
  EXPECT_EQ(tiling.shape.columns, 4);
  EXPECT_EQ(tiling.log, (chain::Point{0, 3, 3}));
  EXPECT_EQ(tiling.run, 8);
  EXPECT_EQ(tiling.blocks(), 512);  // 1.9 of what runs at once
}

TEST(CudaChainIndex, TooMuchIsRefused) {
  ChainDesc desc;
  desc.samples = 16;
  desc.in_extent = Extent::cube(512);
  desc.in = desc.src.box = desc.dst.box = Box::whole(desc.in_extent);
  EXPECT_THROW(chain::check_chain(desc), UsageError);
  desc.samples = 15;
  EXPECT_NO_THROW(chain::check_chain(desc));
  desc.pool = PoolKind::max;
  desc.window = {{7, 7, 6}, Extent::cube(2), {}};
  EXPECT_THROW(chain::check_chain(desc), UsageError);
  desc.pool = PoolKind::average;
  EXPECT_NO_THROW(chain::check_chain(desc));
}

}  // namespace
}  // namespace halograd::test
