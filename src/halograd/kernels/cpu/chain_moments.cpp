#include "halograd/kernels/cpu/chain_moments.hpp"

#include "halograd/core/bf16.hpp"
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

template <typename T>
ChainMoments<T>::ChainMoments(const ChainDesc& desc)
    : desc_(desc),
      contiguous_(desc.src.box == desc.in),
      block_voxels_(contiguous_ ? std::max<std::int64_t>(32, block_elements / std::max<std::int64_t>(1, desc.channels))
                                : std::max<std::int64_t>(1, desc.in.extent().w)),
      partials_(static_cast<std::size_t>(thread_count())) {
  for (Partial& partial : partials_) {
    partial.mean.resize(static_cast<std::size_t>(desc.channels));
    partial.m2.resize(static_cast<std::size_t>(desc.channels));
  }
}

template <typename T>
std::int64_t ChainMoments<T>::held_bytes() const {
  std::int64_t bytes = 0;
  for (const Partial& partial : partials_) bytes += bytes_of(partial.mean) + bytes_of(partial.m2);
  return bytes;
}

template <typename T>
const T* ChainMoments<T>::block(const T* y, const Range& samples, std::int64_t index) const {
  const VoxelBuffer<const T> voxels{y, desc_.src};
  const Index& lo = desc_.in.lo;
  if (contiguous_) return voxels.voxel(samples.lo, lo.d, lo.h, lo.w) + index * block_voxels_ * desc_.src.pitch;
  const Extent extent = desc_.in.extent();
  const std::int64_t plane = index / extent.h;
  return voxels.voxel(samples.lo + plane / extent.d, lo.d + plane % extent.d, lo.h + index % extent.h, lo.w);
}

template <typename T>
void ChainMoments<T>::run(const T* y, const Range& samples, double* mean, double* m2) {
  std::fill_n(mean, desc_.channels, 0.0);
  std::fill_n(m2, desc_.channels, 0.0);
  const auto& kernels = row_kernels<InputKernels<T>>();
  const std::int64_t voxels = samples.size() * desc_.in.volume();
  const std::int64_t blocks = (voxels + block_voxels_ - 1) / block_voxels_;
  const std::int64_t parts = part_count(voxels * desc_.channels, static_cast<std::int64_t>(partials_.size()));
  for (Partial& partial : partials_) partial.count = 0;
  for_each_part(parts, blocks, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    Partial& partial = partials_[static_cast<std::size_t>(part)];
    std::fill(partial.mean.begin(), partial.mean.end(), 0.0);
    std::fill(partial.m2.begin(), partial.m2.end(), 0.0);
    RunningMoments running{0, partial.mean.data(), partial.m2.data()};
    for (std::int64_t index = begin; index < end; ++index) {
      kernels.moments({std::min(block_voxels_, voxels - index * block_voxels_), desc_.channels},
                      {block(y, samples, index), desc_.src.pitch}, running);
    }
    partial.count = running.count;
  });
  double count = 0;
  for (const Partial& partial : partials_) {
    if (partial.count == 0) continue;
    join(partial.mean.data(), partial.m2.data(), partial.count, desc_.channels, mean, m2, count);
    count += partial.count;
  }
}

template class ChainMoments<float>;
template class ChainMoments<Bf16>;

}  // namespace halograd::cpu
