#pragma once

#include <array>
#include <cstdint>

namespace halograd {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): four 32-bit words that depend
/// on nothing but the key and the counter. A number keyed by a global index is the same on every grid.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high,
                                              std::uint64_t counter_low) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = static_cast<std::uint32_t>(counter_low);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter_low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(counter_high);
  std::uint32_t c3 = static_cast<std::uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

/// Names one independent stream of random numbers: a seed, what it is for (a layer's index, say) and a step.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0;
  std::uint32_t step = 0;

  /// 32 random bits for element `index` of the stream.
  [[nodiscard]] constexpr std::uint32_t bits(std::uint64_t index) const {
    const std::uint64_t high = (std::uint64_t{purpose} << 32) | step;
    return philox(seed, high, index / 4)[index % 4];
  }

  /// A float uniform in [0, 1), with 24 random bits.
  [[nodiscard]] constexpr float uniform(std::uint64_t index) const {
    return static_cast<float>(bits(index) >> 8) * 0x1p-24F;
  }

  /// A double uniform in [0, 1), with 53 random bits.
  [[nodiscard]] constexpr double uniform53(std::uint64_t index) const {
    const std::uint64_t high = (std::uint64_t{purpose} << 32) | step;
    const auto words = philox(seed, high, index);
    const std::uint64_t mantissa = ((std::uint64_t{words[0]} << 32) | words[1]) >> 11;
    return static_cast<double>(mantissa) * 0x1p-53;
  }
};

/// The first word of a stream's purpose, so that streams for different things never meet.
enum class RandomPurpose : std::uint32_t {
  initial_weights = 0x1000000,
  dropout = 0x2000000,
  shuffle = 0x3000000,
  split = 0x4000000,
  synthetic = 0x5000000,
  augmentation = 0x6000000,
};

constexpr RandomStream random_stream(std::uint64_t seed, RandomPurpose purpose, std::uint32_t index = 0,
                                     std::uint32_t step = 0) {
  return {seed, static_cast<std::uint32_t>(purpose) + index, step};
}

}  // namespace halograd
