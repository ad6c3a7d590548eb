#include "halograd/kernels/cpu/chain_forward.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cpu/chain_dropout.hpp"
#include "halograd/kernels/cpu/chain_parts.hpp"

#include <algorithm>
#include <type_traits>

namespace halograd::cpu {
namespace {

/// What the planes of one thread's tile may take: a part of the second-level cache.
constexpr std::int64_t tile_bytes = 128 * 1024;
constexpr std::int64_t none_held = -1;

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

template <typename T>
ChainForward<T>::ChainForward(const ChainDesc& desc)
    : desc_(desc),
      row_window_{desc.window.kernel.w, desc.window.stride.w},
      drops_(desc.training && desc.keep < 1),
      writes_apart_((drops_ && !std::is_same_v<T, float>) ||
                    (desc.pool == PoolKind::average && desc.dst.pitch != desc.channels)) {
  const Extent out = desc.out.extent();
  const std::int64_t row = out.w * desc.channels;
  const std::int64_t row_bytes = std::max<std::int64_t>(1, row * static_cast<std::int64_t>(sizeof(float)));
  tile_rows_ =
      std::clamp<std::int64_t>(tile_bytes / (row_bytes * desc.window.kernel.d), 1, std::max<std::int64_t>(1, out.h));
  scratch_.resize(size(thread_count()));
  for (Scratch& scratch : scratch_) {
    scratch.voxel.resize(size(desc.channels));
    if (writes_apart_) scratch.output.resize(size(row));
    if (desc.pool == PoolKind::average) {
      scratch.planes.resize(size(desc.window.kernel.d * tile_rows_ * row));
      scratch.rows.resize(size(desc.window.kernel.h * row));
      scratch.plane_held.resize(size(desc.window.kernel.d));
      scratch.row_held.resize(size(desc.window.kernel.h));
      scratch.summands.resize(size(std::max(desc.window.kernel.d, desc.window.kernel.h)));
    } else if (desc.pool == PoolKind::max) {
      scratch.winners.resize(size(row));
      scratch.max_rows.resize(size(desc.window.kernel.volume()));
    }
  }
}

template <typename T>
std::int64_t ChainForward<T>::held_bytes() const {
  std::int64_t bytes = 0;
  for (const Scratch& scratch : scratch_) {
    bytes += bytes_of(scratch.planes) + bytes_of(scratch.rows) + bytes_of(scratch.voxel) + bytes_of(scratch.output) +
             bytes_of(scratch.winners);
  }
  return bytes;
}

template <typename T>
void ChainForward<T>::run(const ForwardCall<T>& call, const Box& part) {
  const Box box = part.intersect(desc_.dst.box);
  if (box.empty() || call.samples.size() == 0) return;
  const Extent extent = box.extent();
  const std::int64_t planes = call.samples.size() * extent.d;
  const std::int64_t elements = call.samples.size() * box.volume() * desc_.channels * desc_.window.stride.volume();
  const std::int64_t parts = part_count(elements, static_cast<std::int64_t>(scratch_.size()));
  // Few planes and many threads: cut the rows finer, for the sake of the threads.
  const std::int64_t tiles =
      std::max((extent.h + tile_rows_ - 1) / tile_rows_, std::min(extent.h, (parts + planes - 1) / planes));
  for_each_part(parts, planes * tiles, [&](std::int64_t index, std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t column = begin / extent.d;
      const std::int64_t d = begin % extent.d;
      const std::int64_t count = std::min(end - begin, extent.d - d);
      const std::int64_t tile = column % tiles;
      const Box piece{{box.lo.d + d, box.lo.h + extent.h * tile / tiles, box.lo.w},
                      {box.lo.d + d + count, box.lo.h + extent.h * (tile + 1) / tiles, box.hi.w}};
      run_tile(call, call.samples.lo + column / tiles, piece, scratch_[size(index)]);
      begin += count;
    }
  });
}

template <typename T>
void ChainForward<T>::run_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile, Scratch& scratch) const {
  switch (desc_.pool) {
    case PoolKind::none: return activate_tile(call, n, tile, scratch);
    case PoolKind::average: return average_tile(call, n, tile, scratch);
    case PoolKind::max: return max_tile(call, n, tile, scratch);
  }
}

/// Has `make(row)` make the outputs from `at` on, where they belong or in scratch memory, and drops some of them.
/// Dropout comes before outputs are rounded.
template <typename T>
template <typename Make>
void ChainForward<T>::write_row(const ForwardCall<T>& call, std::int64_t n, const Index& at, std::int64_t voxels,
                                Scratch& scratch, const Make& make) const {
  const Row<T> out = VoxelBuffer<T>{call.dst, desc_.dst}.row(n, at.d, at.h, at.w);
  const auto drop = [&](const Row<float>& row) {
    if (drops_) apply_dropout(desc_, call.dropout, n, at, voxels, row);
  };
  if (!writes_apart_) {
    make(out);
    if constexpr (std::is_same_v<T, float>) drop(out);
    return;
  }
  const Row<float> row{scratch.output.data(), desc_.channels};
  make(row);
  drop(row);
  row_kernels<MoveKernels<float, T>>().copy_row({voxels, desc_.channels}, {row.data, row.pitch}, out);
}

template <typename T>
void ChainForward<T>::activate_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile,
                                    Scratch& scratch) const {
  const VoxelBuffer<const T> y{call.y, desc_.src};
  const RowShape shape{tile.extent().w, desc_.channels};
  for (std::int64_t d = tile.lo.d; d < tile.hi.d; ++d) {
    for (std::int64_t h = tile.lo.h; h < tile.hi.h; ++h) {
      write_row(call, n, {d, h, tile.lo.w}, shape.voxels, scratch, [&]<typename Out>(const Row<Out>& out) {
        row_kernels<ActivateKernels<T, Out>>().activate(call.activation, shape, y.row(n, d, h, tile.lo.w), out);
      });
    }
  }
}

template <typename T>
void ChainForward<T>::average_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile,
                                   Scratch& scratch) const {
  const float share = 1.0F / static_cast<float>(desc_.window.kernel.volume());
  const std::int64_t elements = tile.extent().w * desc_.channels;
  std::fill(scratch.plane_held.begin(), scratch.plane_held.end(), none_held);
  for (std::int64_t d = tile.lo.d; d < tile.hi.d; ++d) {
    const Range window = window_range(desc_, 0, d);
    for (std::int64_t id = window.lo; id < window.hi; ++id) pooled_plane(call, n, id, tile, scratch);
    for (std::int64_t h = tile.lo.h; h < tile.hi.h; ++h) {
      for (std::int64_t id = window.lo; id < window.hi; ++id) {
        scratch.summands[size(id - window.lo)] = pooled_plane(call, n, id, tile, scratch) + (h - tile.lo.h) * elements;
      }
      write_row(call, n, {d, h, tile.lo.w}, tile.extent().w, scratch, [&]<typename Out>(const Row<Out>& out) {
        row_kernels<MoveKernels<float, Out>>().sum_rows(scratch.summands.data(), window.size(), elements, share,
                                                        out.data);
      });
    }
  }
}

/// Input plane d summed over its windows along h and w: [tile's rows, W, C].
template <typename T>
const float* ChainForward<T>::pooled_plane(const ForwardCall<T>& call, std::int64_t n, std::int64_t d, const Box& tile,
                                           Scratch& scratch) const {
  const auto& moves = row_kernels<MoveKernels<float, float>>();
  const std::int64_t slot = d % desc_.window.kernel.d;
  const std::int64_t row = tile.extent().w * desc_.channels;
  float* plane = scratch.planes.data() + slot * tile_rows_ * row;
  if (scratch.plane_held[size(slot)] == d) return plane;
  scratch.plane_held[size(slot)] = d;
  std::fill(scratch.row_held.begin(), scratch.row_held.end(), none_held);
  for (std::int64_t h = tile.lo.h; h < tile.hi.h; ++h) {
    const Range window = window_range(desc_, 1, h);
    for (std::int64_t ih = window.lo; ih < window.hi; ++ih) {
      scratch.summands[size(ih - window.lo)] = pooled_row(call, n, d, ih, range_of(tile, 2), scratch);
    }
    moves.sum_rows(scratch.summands.data(), window.size(), row, 1.0F, plane + (h - tile.lo.h) * row);
  }
  return plane;
}

/// Input row (d, h) activated and summed over its windows along w: [outputs, C].
template <typename T>
const float* ChainForward<T>::pooled_row(const ForwardCall<T>& call, std::int64_t n, std::int64_t d, std::int64_t h,
                                         const Range& outputs, Scratch& scratch) const {
  const std::int64_t slot = h % desc_.window.kernel.h;
  const std::int64_t channels = desc_.channels;
  float* pooled = scratch.rows.data() + slot * outputs.size() * channels;
  if (scratch.row_held[size(slot)] == h) return pooled;
  scratch.row_held[size(slot)] = h;
  const InputRow<T> row(desc_, call.y, call.faces, n, d, h);
  const Range inside = interior(outputs);
  if (inside.size() > 0) {
    row_kernels<InputKernels<T>>().pool_sum(call.activation, {inside.size(), channels}, row_window_,
                                            row.from(window_range(desc_, 2, inside.lo).lo),
                                            pooled + (inside.lo - outputs.lo) * channels);
  }
  for (std::int64_t w = outputs.lo; w < outputs.hi; ++w) {
    if (w == inside.lo && inside.size() > 0) w = inside.hi;
    if (w == outputs.hi) break;
    float* out = pooled + (w - outputs.lo) * channels;
    std::fill_n(out, channels, 0.0F);
    const Range window = window_range(desc_, 2, w);
    for (std::int64_t iw = window.lo; iw < window.hi; ++iw) {
      const Row<float> activated{scratch.voxel.data(), channels};
      row_kernels<ActivateKernels<T, float>>().activate(call.activation, {1, channels}, {row.voxel(iw), channels},
                                                        activated);
      row_kernels<MoveKernels<float, float>>().add_row({1, channels}, {activated.data, channels}, {out, channels});
    }
  }
  return pooled;
}

/// The outputs whose windows along w lie whole within the own voxels.
template <typename T>
Range ChainForward<T>::interior(const Range& outputs) const {
  const auto inside = [&](std::int64_t w) {
    const Range window = window_range(desc_, 2, w);
    return window.size() == desc_.window.kernel.w && window.lo >= desc_.in.lo.w && window.hi <= desc_.in.hi.w;
  };
  Range result = outputs;
  while (result.lo < result.hi && !inside(result.lo)) ++result.lo;
  while (result.lo < result.hi && !inside(result.hi - 1)) --result.hi;
  return result;
}

template <typename T>
void ChainForward<T>::max_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile, Scratch& scratch) const {
  const VoxelBuffer<std::uint8_t> argmax{call.argmax, {desc_.out, desc_.channels}};
  const std::int64_t channels = desc_.channels;
  const Range outputs = range_of(tile, 2);
  const Range inside = interior(outputs);
  const auto make_row = [&]<typename Out>(std::int64_t d, std::int64_t h, const Row<Out>& best) {
    std::uint8_t* arg = call.argmax != nullptr ? argmax.voxel(n, d, h, outputs.lo) : scratch.winners.data();
    const auto run = [&](std::int64_t w, std::int64_t count, const RowWindow& window, std::int64_t rows) {
      row_kernels<ActivateKernels<T, Out>>().pool_max(
          call.activation, {count, channels}, window, scratch.max_rows.data(), rows,
          {best.data + (w - outputs.lo) * best.pitch, best.pitch}, arg + (w - outputs.lo) * channels);
    };
    if (inside.size() > 0) {
      run(inside.lo, inside.size(), row_window_, max_rows(call, n, {d, h, inside.lo}, 1, scratch));
    }
    for (std::int64_t w = outputs.lo; w < outputs.hi; ++w) {
      if (w == inside.lo && inside.size() > 0) w = inside.hi;
      if (w == outputs.hi) break;
      const std::int64_t voxels = window_range(desc_, 2, w).size();
      run(w, 1, {1, 1}, max_rows(call, n, {d, h, w}, voxels, scratch));
    }
  };
  for (std::int64_t d = tile.lo.d; d < tile.hi.d; ++d) {
    for (std::int64_t h = tile.lo.h; h < tile.hi.h; ++h) {
      write_row(call, n, {d, h, outputs.lo}, outputs.size(), scratch,
                [&]<typename Out>(const Row<Out>& best) { make_row(d, h, best); });
    }
  }
}

/// Lists the rows of inputs that the window of output `at` covers, from its first `starts` voxels along w each; returns
/// how many there are.
template <typename T>
std::int64_t ChainForward<T>::max_rows(const ForwardCall<T>& call, std::int64_t n, const Index& at, std::int64_t starts,
                                       Scratch& scratch) const {
  const Window& window = desc_.window;
  const Range depths = window_range(desc_, 0, at.d);
  const Range heights = window_range(desc_, 1, at.h);
  const std::int64_t first = window_range(desc_, 2, at.w).lo;
  std::size_t count = 0;
  for (std::int64_t id = depths.lo; id < depths.hi; ++id) {
    for (std::int64_t ih = heights.lo; ih < heights.hi; ++ih) {
      const InputRow<T> row(desc_, call.y, call.faces, n, id, ih);
      const std::int64_t kd = id - (at.d * window.stride.d - window.padding.d);
      const std::int64_t kh = ih - (at.h * window.stride.h - window.padding.h);
      for (std::int64_t w = first; w < first + starts; ++w) {
        const std::int64_t kw = w - (at.w * window.stride.w - window.padding.w);
        const std::int64_t place = (kd * window.kernel.h + kh) * window.kernel.w + kw;
        scratch.max_rows[count++] = {row.from(w), static_cast<int>(place)};
      }
    }
  }
  return static_cast<std::int64_t>(count);
}

template class ChainForward<float>;
template class ChainForward<Bf16>;

}  // namespace halograd::cpu
