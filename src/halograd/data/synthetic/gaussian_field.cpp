#include "halograd/data/synthetic/gaussian_field.hpp"

#include <cmath>

#include "halograd/data/synthetic/random_words.hpp"

namespace halograd {
namespace {

/// Box & Muller: two independent normal numbers from two words.
std::array<float, 2> normal_pair(std::uint32_t a, std::uint32_t b) {
  const float radius = std::sqrt(-2.0F * std::log((static_cast<float>(a) + 0.5F) * 0x1p-32F));
  const float angle = 2.0F * std::numbers::pi_v<float> * static_cast<float>(b >> 8) * 0x1p-24F;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

RealField white_noise(std::int64_t count, const RandomStream& noise) {
  RealField field(static_cast<std::size_t>(count));
  parallel_for((count + 3) / 4, [&](std::int64_t group) {
    const auto words = random_words(noise, static_cast<std::uint64_t>(group));
    const auto first = normal_pair(words[0], words[1]);
    const auto second = normal_pair(words[2], words[3]);
    const std::array<float, 4> values = {first[0], first[1], second[0], second[1]};
    for (std::int64_t i = 0; i < 4 && 4 * group + i < count; ++i) field[4 * group + i] = values[i];
  });
  return field;
}

/// The factor from white noise to density for each squared integer frequency: no mode of the grid has another.
std::vector<float> amplitudes(const ModeGrid& grid, const LinearPower& power) {
  const std::int64_t nyquist = grid.width / 2;
  std::vector<float> table(static_cast<std::size_t>(3 * nyquist * nyquist + 1));
  const double voxels = static_cast<double>(grid.voxel_count());
  const double volume = grid.box * grid.box * grid.box;
  parallel_for(static_cast<std::int64_t>(table.size()), [&](std::int64_t squared) {
    const double k = grid.fundamental() * std::sqrt(static_cast<double>(squared));
    table[squared] = static_cast<float>(std::sqrt(power(k) / (volume * voxels)));
  });
  return table;
}

}  // namespace

ModeField gaussian_density(const Fourier3d& fourier, const ModeGrid& grid, const LinearPower& power,
                           const RandomStream& noise) {
  ModeField density(static_cast<std::size_t>(grid.mode_count()));
  {
    const RealField white = white_noise(grid.voxel_count(), noise);
    fourier.forward(white, density);
  }
  const std::vector<float> table = amplitudes(grid, power);
  grid.for_each_mode([&](std::int64_t mode, std::int64_t d, std::int64_t h, std::int64_t w) {
    const std::int64_t fd = grid.frequency(d);
    const std::int64_t fh = grid.frequency(h);
    density[mode] *= table[fd * fd + fh * fh + w * w];
  });
  return density;
}

}  // namespace halograd
