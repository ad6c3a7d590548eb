#include "halograd/kernels/cpu/chain_gather.hpp"

#include "halograd/kernels/cpu/chain_dropout.hpp"

#include <algorithm>

namespace halograd::cpu {

ChainGather::ChainGather(const ChainDesc& desc)
    : desc_(desc),
      kernels_(row_kernels()),
      known_(desc.out.intersect(desc.dst.box)),
      share_(desc.pool == PoolKind::average ? 1.0F / static_cast<float>(desc.window.kernel.volume()) : 1.0F),
      drops_(desc.training && desc.keep < 1),
      copies_(drops_ || (desc.pool == PoolKind::average && desc.dst.pitch != desc.channels)) {}

GatherScratch ChainGather::make_scratch() const {
  const std::int64_t width = desc_.out.extent().w;
  const std::int64_t most_rows = desc_.window.kernel.d * desc_.window.kernel.h;
  GatherScratch scratch;
  scratch.sum.resize(static_cast<std::size_t>(width * desc_.channels));
  scratch.rows.resize(static_cast<std::size_t>(most_rows));
  if (copies_) scratch.copy.resize(static_cast<std::size_t>(width * desc_.channels));
  return scratch;
}

Row<const float> ChainGather::output_row(const OutputGradient& from, std::int64_t n, std::int64_t d, std::int64_t h,
                                         const Range& outputs, GatherScratch& scratch) const {
  const Row<const float> row = VoxelBuffer<const float>{from.dout, desc_.dst}.row(n, d, h, outputs.lo);
  if (!copies_) return row;
  const Row<float> copy{scratch.copy.data(), desc_.channels};
  copy_row({outputs.size(), desc_.channels}, row, copy);
  if (drops_) apply_dropout(desc_, from.dropout, n, {d, h, outputs.lo}, outputs.size(), copy);
  return {copy.data, copy.pitch};
}

ReaderRows ChainGather::reader_rows(const OutputGradient& from, std::int64_t n, std::int64_t d, std::int64_t h,
                                    const Range& w, bool single, GatherScratch& scratch) const {
  const Range depths = readers(desc_, 0, {d, d + 1}, range_of(known_, 0));
  const Range heights = readers(desc_, 1, {h, h + 1}, range_of(known_, 1));
  const Range outputs = readers(desc_, 2, w, range_of(known_, 2));
  const std::int64_t row_count = depths.size() * heights.size();
  if (row_count == 0 || outputs.size() == 0) return {nullptr, 0, 0, {outputs.lo, outputs.lo}};

  const RowShape shape{outputs.size(), desc_.channels};
  const std::int64_t elements = shape.voxels * shape.channels;
  float* sum = scratch.sum.data();
  if (copies_) std::fill_n(sum, elements, 0.0F);
  std::size_t count = 0;
  for (std::int64_t od = depths.lo; od < depths.hi; ++od) {
    for (std::int64_t oh = heights.lo; oh < heights.hi; ++oh) {
      const Row<const float> row = output_row(from, n, od, oh, outputs, scratch);
      if (copies_) kernels_.add_row(shape, row, {sum, desc_.channels});
      scratch.rows[count++] = row.data;
    }
  }
  const bool as_they_are = row_count == 1 || (!single && (row_count == 2 || row_count == 4));
  if (as_they_are && !copies_) return {scratch.rows.data(), row_count, desc_.dst.pitch, outputs};
  if (!copies_) kernels_.sum_rows(scratch.rows.data(), row_count, elements, 1.0F, sum);
  scratch.rows[0] = sum;
  return {scratch.rows.data(), 1, desc_.channels, outputs};
}

SpreadShape ChainGather::spread_shape(const Range& outputs, const Range& w) const {
  const Window& window = desc_.window;
  return {{w.size(), desc_.channels},
          outputs.size(),
          w.lo + window.padding.w - outputs.lo * window.stride.w,
          {window.kernel.w, window.stride.w}};
}

void ChainGather::spread(const ReaderRows& from, const Range& w, const Row<float>& da) const {
  const Range outputs = readers(desc_, 2, w, from.outputs);
  if (outputs.size() == 0) return;
  for (std::int64_t row = 0; row < from.count; ++row) {
    const float* g = from.rows[row] + (outputs.lo - from.outputs.lo) * from.pitch;
    kernels_.spread(spread_shape(outputs, w), share_, {g, from.pitch}, da);
  }
}

void ChainGather::gather_max(const OutputGradient& from, std::int64_t n, std::int64_t d, std::int64_t h, const Range& w,
                             GatherScratch& scratch, const Row<float>& da) const {
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
      kernels_.spread_max(spread_shape(outputs, w), static_cast<int>((kd * window.kernel.h + kh) * window.kernel.w),
                          output_row(from, n, od, oh, outputs, scratch), argmax.voxel(n, od, oh, outputs.lo), da);
    }
  }
}

}  // namespace halograd::cpu
