#include "halograd/kernels/cpu/chain_moments.hpp"

#include "halograd/kernels/cpu/chain_parts.hpp"

#include <algorithm>

namespace halograd::cpu {
namespace {

/// A block is read twice; the second time it should come from the first-level cache.
constexpr std::int64_t block_elements = 4096;

/// Chan, Golub and LeVeque 1983, equation 2.1.
void join(const double* mean, const double* m2, double count, std::int64_t channels, double* to_mean, double* to_m2,
          double to_count) {
  const double weight = count / (to_count + count);
  for (std::int64_t c = 0; c < channels; ++c) {
    const double delta = mean[c] - to_mean[c];
    to_mean[c] += delta * weight;
    to_m2[c] += m2[c] + delta * delta * to_count * weight;
  }
}

}  // namespace

ChainMoments::ChainMoments(std::int64_t channels)
    : channels_(channels),
      block_voxels_(std::max<std::int64_t>(32, block_elements / std::max<std::int64_t>(1, channels))),
      partials_(static_cast<std::size_t>(thread_count())) {
  for (Partial& partial : partials_) {
    partial.mean.resize(static_cast<std::size_t>(channels));
    partial.m2.resize(static_cast<std::size_t>(channels));
  }
}

std::int64_t ChainMoments::held_bytes() const {
  std::int64_t bytes = 0;
  for (const Partial& partial : partials_) bytes += bytes_of(partial.mean) + bytes_of(partial.m2);
  return bytes;
}

void ChainMoments::run(const float* y, std::int64_t voxels, double* mean, double* m2) {
  std::fill_n(mean, channels_, 0.0);
  std::fill_n(m2, channels_, 0.0);
  const RowKernels& kernels = row_kernels();
  const std::int64_t blocks = (voxels + block_voxels_ - 1) / block_voxels_;
  const std::int64_t parts = part_count(voxels * channels_, static_cast<std::int64_t>(partials_.size()));
  for (Partial& partial : partials_) partial.count = 0;
  for_each_part(parts, blocks, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    Partial& partial = partials_[static_cast<std::size_t>(part)];
    std::fill(partial.mean.begin(), partial.mean.end(), 0.0);
    std::fill(partial.m2.begin(), partial.m2.end(), 0.0);
    RunningMoments running{0, partial.mean.data(), partial.m2.data()};
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * block_voxels_;
      kernels.moments({std::min(block_voxels_, voxels - first), channels_}, y + first * channels_, running);
    }
    partial.count = running.count;
  });
  double count = 0;
  for (const Partial& partial : partials_) {
    if (partial.count == 0) continue;
    join(partial.mean.data(), partial.m2.data(), partial.count, channels_, mean, m2, count);
    count += partial.count;
  }
}

}  // namespace halograd::cpu
