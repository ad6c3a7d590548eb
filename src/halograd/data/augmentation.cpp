#include "halograd/data/augmentation.hpp"

#include "halograd/core/random.hpp"

namespace halograd {

Augmentation draw_augmentation(const AugmentOptions& options, std::int64_t epoch, std::int64_t sample) {
  constexpr std::uint64_t numbers = 5;  // a sample
  const RandomStream stream =
      random_stream(options.seed, RandomPurpose::augmentation, 0, static_cast<std::uint32_t>(epoch));
  const auto uniform = [&](std::uint64_t number) {
    return stream.uniform53(static_cast<std::uint64_t>(sample) * numbers + number);
  };
  Augmentation drawn;
  for (std::size_t i = 0; i < 3; ++i) drawn.flip[i] = options.flip[i] && uniform(i) < 0.5;
  drawn.gain = 1 + options.scale * (2 * uniform(3) - 1);
  drawn.shift = options.shift * (2 * uniform(4) - 1);
  return drawn;
}

Box mirrored(const Box& box, const Extent& volume, const Flips& flip) {
  Box result = box;
  for (int i = 0; i < 3; ++i) {
    if (!flip[static_cast<std::size_t>(i)]) continue;
    result.lo[i] = volume[i] - box.hi[i];
    result.hi[i] = volume[i] - box.lo[i];
  }
  return result;
}

}  // namespace halograd
