#include "halograd/kernels/cpu/chain_dropout.hpp"

namespace halograd::cpu {

void apply_dropout(const RandomStream& stream, float keep, std::int64_t first, std::int64_t count, float* values) {
  // Four elements share one block of the generator: RandomStream::uniform of each, at a quarter of the cost.
  const std::uint64_t high = (std::uint64_t{stream.purpose} << 32) | stream.step;
  std::array<std::uint32_t, 4> words{};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto element = static_cast<std::uint64_t>(first + i);
    if (i == 0 || element % 4 == 0) words = philox(stream.seed, high, element / 4);
    const float uniform = static_cast<float>(words[element % 4] >> 8) * 0x1p-24F;
    values[i] = uniform < keep ? values[i] / keep : 0.0F;
  }
}

void apply_dropout(const ChainDesc& desc, const DropoutKey& key, std::int64_t n, const Index& at, std::int64_t voxels,
                   const Row<float>& row) {
  const Extent& extent = desc.out_extent;
  const std::int64_t voxel = (((key.first_sample + n) * extent.d + at.d) * extent.h + at.h) * extent.w + at.w;
  const std::int64_t channels = desc.channels;
  if (row.pitch == channels) return apply_dropout(key.stream, desc.keep, voxel * channels, voxels * channels, row.data);
  for (std::int64_t i = 0; i < voxels; ++i) {
    apply_dropout(key.stream, desc.keep, (voxel + i) * channels, channels, row.data + i * row.pitch);
  }
}

}  // namespace halograd::cpu
