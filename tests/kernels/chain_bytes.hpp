#pragma once

#include "halograd/kernels/cuda/chain_sums.hpp"
#include "kernels/kernel_bytes.hpp"

#include <algorithm>
#include <vector>

namespace halograd::test {

/// What each kernel of a chain moves, by formulas. The few numbers of each channel are left out, and of the least
/// winners (they can be found again from y) and blocks' sums.
struct ChainBytes {
  KernelBytes moments;
  KernelBytes forward;
  KernelBytes backward_faces;
  KernelBytes backward_sums;
  KernelBytes backward_data;

  /// Of a training step: all that there is, the sums and moments with batch statistics only.
  [[nodiscard]] constexpr KernelBytes step(bool statistics) const {
    KernelBytes total;
    for (const KernelBytes* kernel : {&forward, &backward_faces, &backward_data, &moments, &backward_sums}) {
      if (!statistics && (kernel == &moments || kernel == &backward_sums)) continue;
      total.read += kernel->read;
      total.written += kernel->written;
      total.looked_at += kernel->looked_at;
      total.least += kernel->least;
    }
    return total;
  }
};

namespace counting {

using namespace cuda::chain;

/// Counts the bytes of one chain on a GPU of so many processors, each call over all of its part, buffers aligned.
class ByteCount {
public:
  ByteCount(const ChainDesc& desc, int processors) : desc_(desc), g_(geometry_of(desc)), processors_(processors) {
    const auto lanes = static_cast<std::int32_t>(16 / dtype_size(desc.type));
    lanes_ = takes_vectors(desc, lanes) ? lanes : 1;
    known_ = lanes_ > 1 ? known_window(desc) : 0;
    voxel_ = desc.channels * dtype_size(desc.type);
    y_ = desc.samples * desc.in.volume() * voxel_;
    dout_ = desc.samples * desc.out.intersect(desc.dst.box).volume() * voxel_;
    max_ = desc.pool == PoolKind::max;
    winners_ = max_ && desc.training ? desc.samples * desc.out.volume() * desc.channels : 0;
    for (int side = 0; side < side_count; ++side) {
      faces_ += desc.samples * voxels_of(g_.faces[side]) * voxel_;
      returned_ += desc.samples * voxels_of(inside(g_.returned[side])) * voxel_;
    }
  }

  [[nodiscard]] KernelBytes moments() const {
    const Work work = deal(g_, g_.in, 1, lanes_, 2 * processors_, least_summed);
    const std::int64_t partial = partial_bytes(work);
    // Each thread looks up where its channels are counted from, and so does the kernel that merges.
    const std::int64_t origins = work.sets * (std::int64_t{work.set_blocks} * work.shape.rows + 1) * voxel_;
    return {y_ + partial, partial, y_ + origins, y_};
  }

  [[nodiscard]] KernelBytes forward() const {
    std::int64_t seen = desc_.samples * voxel_;
    for (int i = 0; i < 3; ++i) seen *= covered(i);
    return {seen, dout_ + winners_, desc_.samples * taps() * voxel_, seen + dout_};
  }

  [[nodiscard]] KernelBytes backward_faces() const {
    std::int64_t looked_at = 0;
    for (const Region& face : g_.faces) looked_at += desc_.samples * readings(face) * voxel_;
    // Outputs whose windows reach out of the part.
    std::int64_t own = 1;
    for (int i = 0; i < 3; ++i) own *= own_windows(i);
    const std::int64_t outputs = desc_.samples * (voxels_of(g_.written) - own) * desc_.channels;
    const std::int64_t read = outputs * dtype_size(desc_.type);
    return {read + (max_ ? outputs : 0), faces_, looked_at, read + faces_};
  }

  [[nodiscard]] KernelBytes backward_sums() const {
    const std::int64_t partial = partial_bytes(sums_work());
    const std::int64_t y = reads_y(g_) ? y_ : 0;
    const std::int64_t in = y + dout_ + returned_;
    return {in + winners_read() + partial, partial, y + given(), in};
  }

  [[nodiscard]] KernelBytes backward_data() const {
    const std::int64_t in = (reads_y(g_) ? y_ : 0) + (desc_.accumulate ? y_ : 0);
    return {in + dout_ + returned_ + winners_read(), y_, in + given(), in + dout_ + returned_ + y_};
  }

private:
  static std::int64_t voxels_of(const Region& region) {
    return std::int64_t{region.size(0)} * region.size(1) * region.size(2);
  }
  [[nodiscard]] Region inside(Region region) const {
    for (int i = 0; i < 3; ++i) {
      region.lo[i] = std::max(region.lo[i], g_.in.lo[i]);
      region.hi[i] = std::min(region.hi[i], g_.in.hi[i]);
    }
    return region;
  }
  [[nodiscard]] std::int64_t winners_read() const { return max_ ? dout_ / dtype_size(desc_.type) : 0; }

  [[nodiscard]] Work sums_work() const {
    const std::int32_t width = desc_.pool == PoolKind::none || known_ != 0 ? 2 : 1;
    // As many blocks a processor as BackwardSums asks for.
    const int blocks = lanes_ == 8 || known_ == 3 ? 2 : 3;
    return deal(g_, g_.in, width, lanes_, blocks * processors_, least_summed);
  }
  static std::int64_t partial_bytes(const Work& work) {
    return partial_count(work) * static_cast<std::int64_t>(sizeof(double));
  }

  /// The inputs of an output along a dimension.
  [[nodiscard]] std::int64_t window_size(int i, std::int32_t output) const {
    Point at;
    at[i] = output;
    return window_of(g_, at).size(i);
  }
  /// Voxels along a dimension that any output of the part looks at.
  [[nodiscard]] std::int64_t covered(int i) const {
    std::vector<bool> seen(static_cast<std::size_t>(g_.volume[i]));
    for (std::int32_t output = g_.out.lo[i]; output < g_.out.hi[i]; ++output) {
      Point at;
      at[i] = output;
      const Region window = window_of(g_, at);
      std::fill(seen.begin() + window.lo[i], seen.begin() + window.hi[i], true);
    }
    return std::count(seen.begin(), seen.end(), true);
  }
  [[nodiscard]] std::int64_t window_sum(int i) const {
    std::int64_t sum = 0;
    for (std::int32_t output = g_.out.lo[i]; output < g_.out.hi[i]; ++output) sum += window_size(i, output);
    return sum;
  }
  /// Outputs with a gradient along a dimension whose windows stay inside the part.
  [[nodiscard]] std::int64_t own_windows(int i) const {
    std::int64_t count = 0;
    for (std::int32_t output = g_.written.lo[i]; output < g_.written.hi[i]; ++output) {
      Point at;
      at[i] = output;
      const Region window = window_of(g_, at);
      if (window.lo[i] >= g_.in.lo[i] && window.hi[i] <= g_.in.hi[i]) ++count;
    }
    return count;
  }
  /// Voxels that the threads of a forward run look at, a sample: planes that two windows of a run share once.
  [[nodiscard]] std::int64_t taps() const {
    std::int64_t planes = window_sum(0);
    if (known_ == 3 && !g_.out.empty()) {
      const Tiling tiling = tile(g_, g_.out, lanes_, std::int64_t{2} * processors_);
      for (std::int32_t d = g_.out.lo.d; d < g_.out.hi.d; ++d) {
        const bool starts = (d - g_.out.lo.d) % tiling.run == 0;
        if (!starts) --planes;  // kept from the output before
      }
    }
    return planes * window_sum(1) * window_sum(2);
  }

  /// How often outputs are looked at for the gradient of the region's voxels, a sample.
  [[nodiscard]] std::int64_t readings(const Region& region) const {
    std::int64_t product = 1;
    for (int i = 0; i < 3; ++i) {
      std::int64_t sum = 0;
      for (std::int32_t at = region.lo[i]; at < region.hi[i]; ++at) sum += readers(i, at);
      product *= sum;
    }
    return product;
  }
  [[nodiscard]] std::int64_t readers(int i, std::int32_t voxel) const {
    Point at;
    at[i] = voxel;
    return readers_of(g_, at).size(i);
  }
  /// Bytes of output gradients, and of what neighbours gave, that the backward kernels look at.
  [[nodiscard]] std::int64_t given() const {
    if (known_ == 0) return desc_.samples * readings(g_.in) * voxel_ + returned_;
    // Two voxels along w share what they look at.
    std::int64_t rows = 1;
    for (int i = 0; i < 2; ++i) {
      std::int64_t sum = 0;
      for (std::int32_t at = g_.in.lo[i]; at < g_.in.hi[i]; ++at) sum += readers(i, at);
      rows *= sum;
    }
    std::int64_t outputs = 0;
    for (std::int32_t pair = g_.in.lo.w / 2; pair < divided_up(g_.in.hi.w, 2); ++pair) {
      for (std::int32_t output = pair; output < pair + known_ - 1; ++output) {
        if (output >= g_.written.lo.w && output < g_.written.hi.w) ++outputs;
      }
    }
    return desc_.samples * rows * outputs * voxel_ + returned_;
  }

  ChainDesc desc_;
  Geometry g_;
  std::int32_t processors_;
  std::int32_t lanes_ = 1;
  std::int32_t known_ = 0;
  bool max_ = false;
  std::int64_t voxel_ = 0;
  std::int64_t y_ = 0;
  std::int64_t dout_ = 0;
  std::int64_t winners_ = 0;
  std::int64_t faces_ = 0;
  std::int64_t returned_ = 0;
};

}  // namespace counting

/// The bytes that the chain's kernels move on a GPU of so many processors (an H200 has 132).
inline ChainBytes chain_bytes(const ChainDesc& desc, int processors = 132) {
  const counting::ByteCount count(desc, processors);
  return {count.moments(), count.forward(), count.backward_faces(), count.backward_sums(), count.backward_data()};
}

}  // namespace halograd::test
