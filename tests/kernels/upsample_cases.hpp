#pragma once

#include "halograd/kernels/upsample.hpp"
#include "kernels/slices.hpp"

namespace halograd::test {

inline UpsampleDesc random_upsampling(Dice& dice, std::uint64_t round) {
  UpsampleDesc desc{.samples = dice.between(1, 2),
                    .channels = dice.one_of<std::int64_t>({1, 3, 8, 16, 24}),
                    .kind = round % 2 == 0 ? UpsampleKind::nearest : UpsampleKind::trilinear};
  for (int i = 0; i < 3; ++i) {
    desc.factor[i] = dice.between(1, 4);
    desc.in_extent[i] = dice.between(1, 5);
    desc.out.lo[i] = dice.between(0, desc.in_extent[i] * desc.factor[i] - 1);
    desc.out.hi[i] = dice.between(desc.out.lo[i] + 1, desc.in_extent[i] * desc.factor[i]);
  }
  return desc;
}

/// A dense buffer or a slice of one.
inline Slice random_buffer(Dice& dice, const UpsampleDesc& desc, const Box& box, std::uint64_t seed, bool dense) {
  if (!dense) return random_slice(dice, desc.samples, box, desc.channels, seed);
  Slice slice = dense_slice(desc.samples, box, desc.channels);
  slice.buffer = random_values(static_cast<std::int64_t>(slice.buffer.size()), seed);
  return slice;
}

}  // namespace halograd::test
