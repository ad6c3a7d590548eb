#pragma once

#include "halograd/kernels/region_copy.hpp"
#include "kernels/slices.hpp"

namespace halograd::test {

/// A region on its way from one tensor to another.
struct Move {
  RegionCopy copy;
  Slice from, to;
};

inline Move random_move(Dice& dice, std::uint64_t round) {
  Box region;
  for (int i = 0; i < 3; ++i) {
    region.lo[i] = dice.between(2, 5);
    region.hi[i] = region.lo[i] + dice.between(1, 4);
  }
  const std::int64_t samples = dice.between(1, 3);
  const std::int64_t channels = dice.one_of<std::int64_t>({1, 2, 3, 4, 8, 12, 16, 33});
  const Slice from = random_slice(dice, samples, region, channels, round);
  const Slice to = random_slice(dice, samples, region, channels, round + 1000);
  return {{samples, channels, from.layout, to.layout, region}, from, to};
}

/// A face of one voxel or two along one dimension, from the inside of a tensor with margins into a message.
inline Move face_move(Dice& dice, std::uint64_t round) {
  const int dimension = static_cast<int>(round % 3);
  const std::int64_t width = 1 + static_cast<std::int64_t>(round) / 3 % 2;
  const std::int64_t channels = dice.one_of<std::int64_t>({1, 4, 16, 32});
  const std::int64_t samples = dice.between(1, 2);
  Box own{{0, 0, 0}, {dice.between(4, 9), dice.between(4, 9), dice.between(4, 9)}};
  Slice tensor = dense_slice(samples, {{-2, -2, -2}, {own.hi.d + 2, own.hi.h + 2, own.hi.w + 2}}, channels);
  tensor.buffer = random_values(static_cast<std::int64_t>(tensor.buffer.size()), round);
  Box face = own;
  (round % 2 == 0 ? face.hi : face.lo)[dimension] =
      round % 2 == 0 ? own.lo[dimension] + width : own.hi[dimension] - width;
  Slice message = dense_slice(samples, face, channels);
  message.buffer = random_values(static_cast<std::int64_t>(message.buffer.size()), round + 1);
  return {{samples, channels, tensor.layout, message.layout, face}, tensor, message};
}

inline Move reversed(const Move& move) {
  Move back{move.copy, move.to, move.from};
  std::swap(back.copy.from, back.copy.to);
  return back;
}

}  // namespace halograd::test
