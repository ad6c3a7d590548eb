#pragma once

#include "halograd/kernels/cuda/chain_math.hpp"
#include "halograd/kernels/cuda/chain_work.hpp"

#include <limits>

namespace halograd::cuda::chain {

/// What a forward kernel reads and writes. `Dealt`: Work or Tiling, over the outputs of the part.
template <typename T, typename Dealt>
struct ForwardArgs {
  Geometry geometry;
  Dealt work;
  const T* y = nullptr;
  const T* faces[side_count] = {};
  Normalisation norm;
  Dropout dropout;
  T* dst = nullptr;
  std::uint8_t* winners = nullptr;
};

/// Sum of the window's voxels.
template <int N>
struct WindowSum {
  Lanes<N> sum = all_lanes<N>(0);

  constexpr void take(const Lanes<N>& a, std::int32_t) { add_to(sum, a); }
  /// Takes in what another has seen at places counted from `first`.
  constexpr void join(const WindowSum& other, std::int32_t) { add_to(sum, other.sum); }
};

/// The largest of the window's voxels and its place: the first of equals, and a NaN.
template <int N>
struct WindowMaximum {
  Lanes<N> value = all_lanes<N>(-std::numeric_limits<float>::infinity());
  std::int32_t place[N] = {};

  constexpr void take(const Lanes<N>& a, std::int32_t at) {
    for (int i = 0; i < N; ++i) take(i, a.at[i], at);
  }
  constexpr void join(const WindowMaximum& other, std::int32_t first) {
    for (int i = 0; i < N; ++i) take(i, other.value.at[i], first + other.place[i]);
  }

private:
  constexpr void take(int i, float a, std::int32_t at) {
    const bool wins = a > value.at[i] || a != a;
    value.at[i] = wins ? a : value.at[i];
    place[i] = wins ? at : place[i];
  }
};

template <int N, bool max>
struct WindowResult {
  using Type = WindowSum<N>;
};
template <int N>
struct WindowResult<N, true> {
  using Type = WindowMaximum<N>;
};
template <int N, bool max>
using Pooled = typename WindowResult<N, max>::Type;

/// Dropout, then the store, where dst has room for the output.
template <int N, typename Args, typename T>
constexpr void write_output(const Args& args, std::int32_t n, const Point& out, std::int32_t channel, Lanes<N> value,
                            T* dst) {
  const Geometry& g = args.geometry;
  if (!g.written.contains(out)) return;
  apply_dropout(g, args.dropout, n, out, channel, value);
  store_lanes(value, dst + g.dst.offset(n, out) + channel);
}

template <int N, typename Args>
constexpr void write_pooled(const Args& args, std::int32_t n, const Point& out, std::int32_t channel,
                            const WindowSum<N>& window) {
  Lanes<N> average = window.sum;
  for (int i = 0; i < N; ++i) average.at[i] *= args.geometry.share;
  write_output(args, n, out, channel, average, args.dst);
}

template <int N, typename Args>
constexpr void write_pooled(const Args& args, std::int32_t n, const Point& out, std::int32_t channel,
                            const WindowMaximum<N>& window) {
  write_output(args, n, out, channel, window.value, args.dst);
  if (args.winners == nullptr) return;
  store_packet(winners_of(window.place), args.winners + args.geometry.winners.offset(n, out) + channel);
}

/// Without pooling: each output is made of the voxel of the same index.
template <typename T, int N>
struct ForwardPlain : OneStage<ForwardPlain<T, N>> {
  using Args = ForwardArgs<T, Work>;
  static constexpr int blocks_per_processor = N == 8 ? 3 : 4;
  /// Cells loaded before the first is worked on.
  static constexpr int batch = N == 8 ? 3 : 2;

  static constexpr void run_thread(const Args& args, const PlainThread& me) {
    const Work& work = args.work;
    const Share share = share_of(work, me.block);
    const Stand stand = stand_of(work.shape, share.slice, me.thread);
    if (!stand.works) return;
    const auto activated = load_activation<N>(args.geometry, args.norm, share.set, stand.channel);
    const std::uint32_t first = share.first + static_cast<std::uint32_t>(stand.row);
    for (std::uint32_t item = first; item < work.items; item += batch * share.step) {
      Packet<T, N> y[batch];
      Cell cell[batch];
      unrolled<batch>([&](auto i) {
        const std::uint32_t at = item + i() * share.step;
        if (at >= work.items) return;
        cell[i] = cell_of(work, share.set, at);
        y[i] = load_packet<N>(args.y + args.geometry.src.offset(cell[i].n, cell[i].at) + stand.channel);
      });
      unrolled<batch>([&](auto i) {
        if (item + i() * share.step >= work.items) return;
        write_output(args, cell[i].n, cell[i].at, stand.channel, activated(widen(y[i])), args.dst);
      });
    }
  }
};

/// Pooling with any window.
template <typename T, int N, bool max>
struct ForwardAny : OneStage<ForwardAny<T, N, max>> {
  using Args = ForwardArgs<T, Work>;
  static constexpr int blocks_per_processor = 2;

  static constexpr void run_thread(const Args& args, const PlainThread& me) {
    const Work& work = args.work;
    const Share share = share_of(work, me.block);
    const Stand stand = stand_of(work.shape, share.slice, me.thread);
    if (!stand.works) return;
    const auto activated = load_activation<N>(args.geometry, args.norm, share.set, stand.channel);
    const std::uint32_t first = share.first + static_cast<std::uint32_t>(stand.row);
    for (std::uint32_t item = first; item < work.items; item += share.step) {
      const Cell cell = cell_of(work, share.set, item);
      const Region window = window_of(args.geometry, cell.at);
      Pooled<N, max> pooled;
      for (std::int32_t d = window.lo.d; d < window.hi.d; ++d) {
        for (std::int32_t h = window.lo.h; h < window.hi.h; ++h) {
          for (std::int32_t w = window.lo.w; w < window.hi.w; ++w) {
            const Point at{d, h, w};
            const T* from = source_of(args.geometry, args.y, args.faces, cell.n, at) + stand.channel;
            pooled.take(activated(load_lanes<N>(from)), place_in_window(args.geometry, cell.at, at));
          }
        }
      }
      write_pooled(args, cell.n, cell.at, stand.channel, pooled);
    }
  }
};

/// Pooling with window 3, stride 2, padding 1 (`kernel` 3) or 2/2/0 (2). A thread goes along d and keeps what two of
/// its windows share, so that it looks at 18 voxels an output instead of 27. `faced`: some of them are neighbours'.
template <typename T, int N, int kernel, bool max, bool faced>
struct ForwardPooled : OneStage<ForwardPooled<T, N, kernel, max, faced>> {
  using Args = ForwardArgs<T, Tiling>;
  static constexpr int blocks_per_processor = 2;
  static constexpr std::int32_t padding = kernel == 3 ? 1 : 0;
  static constexpr std::int32_t plane_places = kernel * kernel;

  static constexpr void run_thread(const Args& args, const PlainThread& me) {
    const Run run = run_of(args.work, me.block, me.thread);
    if (run.first.d >= run.end) return;
    const Geometry& g = args.geometry;
    const std::int32_t channel = run.stand.channel;
    const auto activated = load_activation<N>(g, args.norm, g.per_sample ? run.n : 0, channel);
    const Footprint foot = footprint_of(g, run.first);
    Point out = run.first;
    Result before;
    if constexpr (kernel == 3) before = plane(args, foot, run.n, 2 * out.d - 1, channel, activated);
    for (; out.d < run.end; ++out.d) {
      Result pooled;
      if constexpr (kernel == 3) pooled.join(before, 0);
      pooled.join(plane(args, foot, run.n, 2 * out.d, channel, activated), (kernel - 2) * plane_places);
      before = plane(args, foot, run.n, 2 * out.d + 1, channel, activated);
      pooled.join(before, (kernel - 1) * plane_places);
      write_pooled(args, run.n, out, channel, pooled);
    }
  }

private:
  using Result = Pooled<N, max>;

  /// The window of one output in h and w, with what lies outside the volume moved to its border and marked.
  struct Footprint {
    std::int32_t h[kernel];
    std::int32_t w[kernel];
    bool has_h[kernel];
    bool has_w[kernel];
  };

  static constexpr Footprint footprint_of(const Geometry& g, const Point& out) {
    Footprint foot;
    for (int i = 0; i < kernel; ++i) {
      const std::int32_t h = 2 * out.h - padding + i;
      const std::int32_t w = 2 * out.w - padding + i;
      foot.h[i] = h < 0 ? 0 : (h < g.volume.h ? h : g.volume.h - 1);
      foot.w[i] = w < 0 ? 0 : (w < g.volume.w ? w : g.volume.w - 1);
      foot.has_h[i] = foot.h[i] == h;
      foot.has_w[i] = foot.w[i] == w;
    }
    return foot;
  }

  static constexpr const T* find(const Args& args, std::int32_t n, const Point& at) {
    if constexpr (faced) return source_of(args.geometry, args.y, args.faces, n, at);
    return args.y + args.geometry.src.offset(n, at);
  }

  /// One plane of the window. All of it is loaded before any is used, so that the loads overlap.
  static constexpr Result plane(const Args& args, const Footprint& foot, std::int32_t n, std::int32_t d,
                                std::int32_t channel, const Activation<N>& activated) {
    Result result;
    if (d < 0 || d >= args.geometry.volume.d) return result;
    Packet<T, N> y[kernel][kernel];
    for (int i = 0; i < kernel; ++i) {
      for (int j = 0; j < kernel; ++j) {
        y[i][j] = load_packet<N>(find(args, n, {d, foot.h[i], foot.w[j]}) + channel);
      }
    }
    for (int i = 0; i < kernel; ++i) {
      for (int j = 0; j < kernel; ++j) {
        if (foot.has_h[i] && foot.has_w[j]) result.take(activated(widen(y[i][j])), i * kernel + j);
      }
    }
    return result;
  }
};

}  // namespace halograd::cuda::chain
