#pragma once

#include "halograd/core/error.hpp"
#include "halograd/kernels/chain.hpp"

#include <algorithm>
#include <limits>

namespace halograd::cuda::chain {

/// Throws UsageError where the chain is more than the kernels' numbers hold.
inline void check_chain(const ChainDesc& desc) {
  constexpr std::int64_t most_voxels = std::numeric_limits<std::int32_t>::max();
  const std::int64_t voxels =
      desc.samples * std::max({desc.src.box.volume(), desc.dst.box.volume(), desc.out.volume()});
  if (voxels > most_voxels) {
    throw UsageError("a chain over {} voxels a rank: on a GPU at most {}, use a finer grid or a smaller batch", voxels,
                     most_voxels);
  }
  constexpr std::int64_t most_places = 256;
  const std::int64_t places = desc.window.kernel.volume();
  if (desc.pool == PoolKind::max && places > most_places) {
    throw UsageError("max pooling over a window of {} voxels: at most {}", places, most_places);
  }
}

}  // namespace halograd::cuda::chain
