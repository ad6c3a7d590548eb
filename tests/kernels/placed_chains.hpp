#pragma once

#include "kernels/chain_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace halograd::test {

/// A chain, and one rank's part of it.
struct PlacedChain {
  std::string name;
  ChainDesc desc;
};

inline void PrintTo(const PlacedChain& chain, std::ostream* out) {
  *out << chain.name;
}

inline std::string placed_name(const testing::TestParamInfo<PlacedChain>& info) {
  return info.param.name;
}

/// Every chain on one rank, there with a destination that leaves outputs out too, and on every rank of those grids that
/// it can be cut for.
inline std::vector<PlacedChain> placed_chains(const std::vector<ChainCase>& cases, const std::vector<Extent>& grids) {
  std::vector<PlacedChain> result;
  for (const ChainCase& test : cases) {
    result.push_back({test.name, whole_chain(test)});
    ChainDesc narrow = whole_chain(test);
    narrow.dst.box = narrow.out;
    for (int i = 0; i < 3; ++i) narrow.dst.box.hi[i] = std::max<std::int64_t>(1, narrow.out.hi[i] - 1);
    result.push_back({fmt::format("{}_narrow", test.name), narrow});
    for (const Extent& grid : grids) {
      if (test.extent.d < grid.d) continue;
      const Partition input = Partition::even(test.extent, grid);
      if (!halos_fit(input, input.derive(test.window), test.window)) continue;
      for_each_index(Box::whole(grid), [&](const Index& at) {
        result.push_back({fmt::format("{}_{}x{}x{}_at_{}{}{}", test.name, grid.d, grid.h, grid.w, at.d, at.h, at.w),
                          part_chain(test, input, at, 1)});
      });
    }
  }
  return result;
}

}  // namespace halograd::test
