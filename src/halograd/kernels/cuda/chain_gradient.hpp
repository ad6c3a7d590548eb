#pragma once

#include "halograd/kernels/cuda/chain_math.hpp"
#include "halograd/kernels/cuda/chain_work.hpp"

namespace halograd::cuda::chain {

/// The gradient of a chain's outputs, as the next layer gives it.
template <typename T>
struct GradientSource {
  const T* dout = nullptr;
  const std::uint8_t* winners = nullptr;
  Dropout dropout;
};

template <int N, typename T>
constexpr Lanes<N> output_gradient(const Geometry& g, const GradientSource<T>& from, std::int32_t n, const Point& out,
                                   std::int32_t channel, const Packet<T, N>& dout) {
  Lanes<N> lanes = widen(dout);
  apply_dropout(g, from.dropout, n, out, channel, lanes);
  return lanes;
}

/// Adds the gradient to the channels whose maximum stood at `place`.
template <int N>
constexpr void add_where(Lanes<N>& sum, const Lanes<N>& given, const Winners<N>& winners, std::int32_t place) {
  for (int i = 0; i < N; ++i) {
    if (winner_of(winners, i) == place) sum.at[i] += given.at[i];
  }
}

// Gathers: da, the gradient of the activations, of the `width` voxels of a cell from the outputs that this rank holds.
// `blocks_per_processor`: as many blocks as have room for their registers where dy is made of da.

/// Without pooling.
template <typename T, int N>
struct GatherPlain {
  static constexpr int width = 2;
  static constexpr int blocks_per_processor = N == 8 ? 2 : 3;

  static constexpr void run(const Geometry& g, const GradientSource<T>& from, std::int32_t n, const Point& cell,
                            std::int32_t channel, Lanes<N> (&da)[width]) {
    Packet<T, N> dout[width] = {};
    const std::int64_t offset = g.dst.offset(n, cell) + channel;
    unrolled<width>([&](auto i) {
      const Point at{cell.d, cell.h, cell.w + i};
      if (g.written.contains(at)) dout[i] = load_packet<N>(from.dout + offset + i * g.dst.pitch);
    });
    unrolled<width>([&](auto i) {
      const Point at{cell.d, cell.h, cell.w + i};
      da[i] = all_lanes<N>(0);
      if (g.written.contains(at)) da[i] = output_gradient(g, from, n, at, channel, dout[i]);
    });
  }
};

/// From any window.
template <typename T, int N, bool max>
struct GatherAny {
  static constexpr int width = 1;
  static constexpr int blocks_per_processor = 3;

  static constexpr void run(const Geometry& g, const GradientSource<T>& from, std::int32_t n, const Point& at,
                            std::int32_t channel, Lanes<N> (&da)[width]) {
    da[0] = all_lanes<N>(0);
    const Region readers = readers_of(g, at);
    for (std::int32_t d = readers.lo.d; d < readers.hi.d; ++d) {
      for (std::int32_t h = readers.lo.h; h < readers.hi.h; ++h) {
        for (std::int32_t w = readers.lo.w; w < readers.hi.w; ++w) {
          const Point out{d, h, w};
          const auto dout = load_packet<N>(from.dout + g.dst.offset(n, out) + channel);
          const auto given = output_gradient(g, from, n, out, channel, dout);
          if constexpr (max) {
            const auto winners = load_packet<N>(from.winners + g.winners.offset(n, out) + channel);
            add_where(da[0], given, winners, place_in_window(g, out, at));
          } else {
            add_to(da[0], given);
          }
        }
      }
    }
    if constexpr (!max) {
      for (int i = 0; i < N; ++i) da[0].at[i] *= g.share;
    }
  }
};

/// From window 3, stride 2, padding 1 (`kernel` 3) or 2/2/0 (2): voxels 2j and 2j + 1 along w together look at outputs
/// j and, with window 3, j + 1. In d and h likewise one or two outputs read a voxel.
template <typename T, int N, int kernel, bool max>
struct GatherPairs {
  static constexpr int width = 2;
  static constexpr int blocks_per_processor = kernel == 3 ? 2 : 3;
  /// Outputs along a dimension that read a voxel, at most.
  static constexpr int readers = kernel - 1;
  /// Rows of outputs loaded at a time: as many as there are registers for.
  static constexpr int batch = max && N == 8 ? 1 : readers;
  static constexpr std::int32_t padding = kernel == 3 ? 1 : 0;

  static constexpr void run(const Geometry& g, const GradientSource<T>& from, std::int32_t n, const Point& cell,
                            std::int32_t channel, Lanes<N> (&da)[width]) {
    for (Lanes<N>& lanes : da) lanes = all_lanes<N>(0);
    if (g.written.empty()) return;
    for (std::int32_t d = cell.d / 2; d <= (cell.d + padding) / 2; ++d) {
      if (d < g.written.lo.d || d >= g.written.hi.d) continue;
      unrolled<readers / batch>([&](auto i) { add_rows<i * batch, batch>(g, from, n, cell, d, channel, da); });
    }
    if constexpr (!max) {
      for (Lanes<N>& lanes : da) {
        for (int i = 0; i < N; ++i) lanes.at[i] *= g.share;
      }
    }
  }

private:
  static constexpr std::int32_t held(std::int32_t value, std::int32_t lo, std::int32_t hi) {
    return value < lo ? lo : (value < hi ? value : hi - 1);
  }

  /// What the outputs `rows` of one plane give. All are loaded before any is used, so that the loads overlap; an output
  /// that is not there is one that is, unused.
  template <int first_row, int rows>
  static constexpr void add_rows(const Geometry& g, const GradientSource<T>& from, std::int32_t n, const Point& cell,
                                 std::int32_t d, std::int32_t channel, Lanes<N> (&da)[width]) {
    const Point first{d, cell.h / 2 + first_row, cell.w / 2};
    Packet<T, N> dout[rows][readers];
    Winners<N> winners[rows][readers];
    unrolled<rows>([&](auto i) {
      unrolled<readers>([&](auto j) {
        const Point out{d, held(first.h + i, g.written.lo.h, g.written.hi.h),
                        held(first.w + j, g.written.lo.w, g.written.hi.w)};
        dout[i][j] = load_packet<N>(from.dout + g.dst.offset(n, out) + channel);
        if constexpr (max) winners[i][j] = load_packet<N>(from.winners + g.winners.offset(n, out) + channel);
      });
    });
    unrolled<rows>([&](auto i) {
      unrolled<readers>([&](auto j) {
        const Point out{d, first.h + i, first.w + j};
        const bool reads_row = first_row + i == 0 || cell.h % 2 == 1;
        if (!reads_row || !g.written.contains(out)) return;
        const auto given = output_gradient(g, from, n, out, channel, dout[i][j]);
        unrolled<width>([&](auto v) {
          constexpr int place = v() + padding - 2 * j();
          if constexpr (place >= 0 && place < kernel) {
            if constexpr (max) {
              const std::int32_t row = (cell.d - 2 * out.d + padding) * kernel + cell.h - 2 * out.h + padding;
              add_where(da[v], given, winners[i][j], row * kernel + place);
            } else {
              add_to(da[v], given);
            }
          }
        });
      });
    });
  }
};

/// Adds what neighbours' outputs gave to a voxel, in the order of the sides.
template <int N, typename T>
constexpr void add_received(const Geometry& g, const T* const* received, std::int32_t n, const Point& at,
                            std::int32_t channel, Lanes<N>& da) {
  for (int side = 0; side < side_count; ++side) {
    if (received[side] == nullptr || !g.returned[side].contains(at)) continue;
    add_to(da, load_lanes<N>(received[side] + Placement(g.returned[side], g.channels).offset(n, at) + channel));
  }
}

}  // namespace halograd::cuda::chain
