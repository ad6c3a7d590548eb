#include "halograd/kernels/cpu/chain_gather.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cpu/chain_dropout.hpp"

#include <algorithm>

namespace halograd::cpu {

template <typename T>
ChainGather<T>::ChainGather(const ChainDesc& desc)
    : desc_(desc),
      known_(desc.out.intersect(desc.dst.box)),
      share_(desc.pool == PoolKind::average ? 1.0F / static_cast<float>(desc.window.kernel.volume()) : 1.0F),
      drops_(desc.training && desc.keep < 1),
      copies_(drops_ || (desc.pool == PoolKind::average && desc.dst.pitch != desc.channels)) {}

template <typename T>
GatherScratch<T> ChainGather<T>::make_scratch() const {
  const std::int64_t width = desc_.out.extent().w;
  const std::int64_t most_rows = desc_.window.kernel.d * desc_.window.kernel.h;
  GatherScratch<T> scratch;
  scratch.sum.resize(static_cast<std::size_t>(width * desc_.channels));
  scratch.rows.resize(static_cast<std::size_t>(most_rows));
  if (copies_) scratch.copy.resize(static_cast<std::size_t>(width * desc_.channels));
  return scratch;
}

template <typename T>
Row<const T> ChainGather<T>::output_row(const OutputGradient<T>& from, std::int64_t n, std::int64_t d, std::int64_t h,
                                        const Range& outputs) const {
  return VoxelBuffer<const T>{from.dout, desc_.dst}.row(n, d, h, outputs.lo);
}

/// The same, dense and with dropout.
template <typename T>
Row<const float> ChainGather<T>::copied_row(const OutputGradient<T>& from, std::int64_t n, std::int64_t d,
                                            std::int64_t h, const Range& outputs, GatherScratch<T>& scratch) const {
  const Row<float> copy{scratch.copy.data(), desc_.channels};
  row_kernels<MoveKernels<T, float>>().copy_row({outputs.size(), desc_.channels}, output_row(from, n, d, h, outputs),
                                                copy);
  if (drops_) apply_dropout(desc_, from.dropout, n, {d, h, outputs.lo}, outputs.size(), copy);
  return {copy.data, copy.pitch};
}

template <typename T>
ReaderRows<T> ChainGather<T>::reader_rows(const OutputGradient<T>& from, std::int64_t n, std::int64_t d, std::int64_t h,
                                          const Range& w, bool single, GatherScratch<T>& scratch) const {
  const Range depths = readers(desc_, 0, {d, d + 1}, range_of(known_, 0));
  const Range heights = readers(desc_, 1, {h, h + 1}, range_of(known_, 1));
  const Range outputs = readers(desc_, 2, w, range_of(known_, 2));
  const std::int64_t row_count = depths.size() * heights.size();
  if (row_count == 0 || outputs.size() == 0) return {nullptr, nullptr, 0, 0, {outputs.lo, outputs.lo}};

  const RowShape shape{outputs.size(), desc_.channels};
  const std::int64_t elements = shape.voxels * shape.channels;
  float* sum = scratch.sum.data();
  if (copies_) std::fill_n(sum, elements, 0.0F);
  std::size_t count = 0;
  for (std::int64_t od = depths.lo; od < depths.hi; ++od) {
    for (std::int64_t oh = heights.lo; oh < heights.hi; ++oh) {
      if (copies_) {
        row_kernels<MoveKernels<float, float>>().add_row(shape, copied_row(from, n, od, oh, outputs, scratch),
                                                         {sum, desc_.channels});
      } else {
        scratch.rows[count++] = output_row(from, n, od, oh, outputs).data;
      }
    }
  }
  const bool as_they_are = row_count == 1 || (!single && (row_count == 2 || row_count == 4));
  if (as_they_are && !copies_) return {scratch.rows.data(), nullptr, row_count, desc_.dst.pitch, outputs};
  if (!copies_) row_kernels<MoveKernels<T, float>>().sum_rows(scratch.rows.data(), row_count, elements, 1.0F, sum);
  return {nullptr, sum, 1, desc_.channels, outputs};
}

template <typename T>
SpreadShape ChainGather<T>::spread_shape(const Range& outputs, const Range& w) const {
  const Window& window = desc_.window;
  return {{w.size(), desc_.channels},
          outputs.size(),
          w.lo + window.padding.w - outputs.lo * window.stride.w,
          {window.kernel.w, window.stride.w}};
}

template <typename T>
void ChainGather<T>::spread(const ReaderRows<T>& from, const Range& w, const Row<float>& da) const {
  const Range outputs = readers(desc_, 2, w, from.outputs);
  if (outputs.size() == 0) return;
  const SpreadShape shape = spread_shape(outputs, w);
  from.visit([&]<typename Given>(const Given* const* rows) {
    for (std::int64_t row = 0; row < from.count; ++row) {
      const Given* g = rows[row] + (outputs.lo - from.outputs.lo) * from.pitch;
      row_kernels<GradientKernels<T, Given>>().spread(shape, share_, {g, from.pitch}, da);
    }
  });
}

template <typename T>
void ChainGather<T>::gather_max(const OutputGradient<T>& from, std::int64_t n, std::int64_t d, std::int64_t h,
                                const Range& w, GatherScratch<T>& scratch, const Row<float>& da) const {
  const Window& window = desc_.window;
  const Range depths = readers(desc_, 0, {d, d + 1}, range_of(known_, 0));
  const Range heights = readers(desc_, 1, {h, h + 1}, range_of(known_, 1));
  const Range outputs = readers(desc_, 2, w, range_of(known_, 2));
  if (outputs.size() == 0) return;
  const VoxelBuffer<const std::uint8_t> argmax{from.argmax, {desc_.out, desc_.channels}};
  for (std::int64_t od = depths.lo; od < depths.hi; ++od) {
    for (std::int64_t oh = heights.lo; oh < heights.hi; ++oh) {
      const std::int64_t kd = d - (od * window.stride.d - window.padding.d);
      const std::int64_t kh = h - (oh * window.stride.h - window.padding.h);
      const int code = static_cast<int>((kd * window.kernel.h + kh) * window.kernel.w);
      const auto spread_row = [&]<typename Given>(const Row<const Given>& g) {
        row_kernels<GradientKernels<T, Given>>().spread_max(spread_shape(outputs, w), code, g,
                                                            argmax.voxel(n, od, oh, outputs.lo), da);
      };
      copies_ ? spread_row(copied_row(from, n, od, oh, outputs, scratch))
              : spread_row(output_row(from, n, od, oh, outputs));
    }
  }
}

template class ChainGather<float>;
template class ChainGather<Bf16>;

}  // namespace halograd::cpu
