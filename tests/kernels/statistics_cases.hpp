#pragma once

#include "halograd/kernels/statistics.hpp"
#include "kernels/support.hpp"

namespace halograd::test {

inline std::vector<double> random_doubles(std::int64_t count, std::uint64_t seed, double low = -1) {
  const std::vector<float> values = random_values(count, seed, low);
  return {values.begin(), values.end()};
}

inline StatisticsDesc random_statistics(Dice& dice) {
  StatisticsDesc desc{.sets = dice.between(1, 3), .group_channels = dice.between(1, 4)};
  desc.channels = desc.group_channels * dice.between(1, 90);
  desc.own_count = static_cast<double>(dice.between(0, 1000));
  desc.count = desc.own_count * static_cast<double>(desc.group_channels * dice.between(1, 3));
  desc.epsilon = 1e-5;
  desc.contributes = dice.between(0, 3) > 0;
  return desc;
}

}  // namespace halograd::test
