#pragma once

#include "halograd/kernels/cuda/chain_gradient.hpp"

namespace halograd::cuda::chain {

template <typename T>
struct BackwardArgs {
  Geometry geometry;
  Work work;
  const T* y = nullptr;
  const T* received[side_count] = {};
  bool any_received = false;
  Normalisation norm;
  GradientSource<T> from;
  NormGradient statistics;
  T* dy = nullptr;
  double* partial = nullptr;
};

/// The numbers of a block's channels, made once and read from shared memory: in registers they would take too many.
struct alignas(32) ChannelTable {
  static constexpr int room = most_columns * wide_lanes<Bf16>;
  float mean[room];
  float scale[room];
  float shift[room];
  float offset[room];  ///< dy = scale · dz + offset + (y − mean) · pull
  float pull[room];
};

template <typename T>
constexpr void fill_table(const BackwardArgs<T>& args, std::uint32_t block, std::uint32_t thread, ChannelTable& table) {
  const Geometry& g = args.geometry;
  const Share share = share_of(args.work, block);
  const auto place = static_cast<std::int32_t>(thread);
  const std::int32_t c = share.slice * args.work.shape.slice_channels() + place;
  if (place >= args.work.shape.slice_channels() || c >= g.channels) return;
  const ChannelNorm norm = channel_norm(g, args.norm, share.set, c);
  table.mean[place] = norm.mean;
  table.scale[place] = norm.scale;
  table.shift[place] = norm.shift;
  table.offset[place] = 0;
  table.pull[place] = 0;
  if (!g.normalise || args.statistics.offset == nullptr) return;
  const std::int64_t at = static_cast<std::int64_t>(share.set) * g.channels + c;
  table.offset[place] = static_cast<float>(args.statistics.offset[at]);
  table.pull[place] =
      static_cast<float>(args.statistics.pull[at] * static_cast<double>(args.norm.inverse_deviation[at]));
}

/// The gradient of z from that of a, and y − mean.
template <int N>
struct NormalisedGradient {
  Lanes<N> dz;
  Lanes<N> centred;
};

template <int N>
constexpr NormalisedGradient<N> through_activation(const ChannelTable& table, std::int32_t place, float slope,
                                                   const Lanes<N>& y, const Lanes<N>& da) {
  const auto mean = load_lanes<N>(table.mean + place);
  const auto scale = load_lanes<N>(table.scale + place);
  const auto shift = load_lanes<N>(table.shift + place);
  NormalisedGradient<N> result;
  for (int i = 0; i < N; ++i) {
    result.centred.at[i] = y.at[i] - mean.at[i];
    const float z = result.centred.at[i] * scale.at[i] + shift.at[i];
    result.dz.at[i] = z > 0 ? da.at[i] : slope * da.at[i];
  }
  return result;
}

/// The cell's voxels that lie in the box, and their y where it is read.
template <typename T, int N, int width>
struct CellInput {
  Packet<T, N> y[width];
  bool inside[width];
};

template <int N, int width, typename T>
constexpr CellInput<T, N, width> load_cell(const BackwardArgs<T>& args, const Cell& cell, std::int32_t channel) {
  CellInput<T, N, width> input = {};
  const std::int64_t offset = args.geometry.src.offset(cell.n, cell.at) + channel;
  unrolled<width>([&](auto i) {
    const std::int32_t w = cell.at.w + i;
    input.inside[i] = w >= args.work.box.lo.w && w < args.work.box.hi.w;
    if (input.inside[i] && reads_y(args.geometry)) {
      input.y[i] = load_packet<N>(args.y + offset + i * args.geometry.src.pitch);
    }
  });
  return input;
}

/// dy, assigned or added. A voxel of y is read by the thread that writes it alone, so that dy may be y.
template <typename T, int N, typename Gather>
struct BackwardData {
  using Args = BackwardArgs<T>;
  using Shared = ChannelTable;
  using Thread = PlainThread;
  static constexpr int threads = block_threads;
  static constexpr int blocks_per_processor = Gather::blocks_per_processor;
  static constexpr int width = Gather::width;

  template <typename Team>
  static constexpr void run(Team& team, const Args& args, Shared& table) {
    team.each([&](Thread& me) { fill_table(args, me.block, me.thread, table); });
    team.last([&](Thread& me) { run(args, me, table); });
  }

private:
  static constexpr void run(const Args& args, const Thread& me, const ChannelTable& table) {
    const Work& work = args.work;
    const Share share = share_of(work, me.block);
    const Stand stand = stand_of(work.shape, share.slice, me.thread);
    if (!stand.works) return;
    const std::uint32_t first = share.first + static_cast<std::uint32_t>(stand.row);
    for (std::uint32_t item = first; item < work.items; item += share.step) {
      const Cell cell = cell_of(work, share.set, item);
      const auto input = load_cell<N, width>(args, cell, stand.channel);
      Lanes<N> da[width];
      Gather::run(args.geometry, args.from, cell.n, cell.at, stand.channel, da);
      T* const to = args.dy + args.geometry.src.offset(cell.n, cell.at) + stand.channel;
      unrolled<width>([&](auto i) {
        if (!input.inside[i]) return;
        const Point at{cell.at.d, cell.at.h, cell.at.w + i};
        if (args.any_received) add_received(args.geometry, args.received, cell.n, at, stand.channel, da[i]);
        write(args.geometry, table, stand.column * N, input.y[i], da[i], to + i * args.geometry.src.pitch);
      });
    }
  }

  static constexpr void write(const Geometry& g, const ChannelTable& table, std::int32_t place, const Packet<T, N>& y,
                              const Lanes<N>& da, T* to) {
    Lanes<N> dy = da;
    if (reads_y(g)) {
      const auto gradient = through_activation(table, place, g.slope, widen(y), da);
      const auto scale = load_lanes<N>(table.scale + place);
      const auto offset = load_lanes<N>(table.offset + place);
      const auto pull = load_lanes<N>(table.pull + place);
      for (int i = 0; i < N; ++i) {
        dy.at[i] = gradient.dz.at[i] * scale.at[i] + (gradient.centred.at[i] * pull.at[i] + offset.at[i]);
      }
    }
    if (g.accumulate) add_to(dy, load_lanes<N>(to));
    store_lanes(dy, to);
  }
};

/// The faces of a box, one after the other.
template <typename T>
struct FacesArgs {
  Geometry geometry;
  Work work[side_count];
  std::uint32_t first_block[side_count + 1] = {};
  GradientSource<T> from;
  T* dfaces[side_count] = {};
};

/// What this rank's outputs give to neighbours' activations, from any window.
template <typename T, int N, bool max>
struct BackwardFaces : OneStage<BackwardFaces<T, N, max>> {
  using Args = FacesArgs<T>;
  static constexpr int blocks_per_processor = 3;

  static constexpr void run_thread(const Args& args, const PlainThread& me) {
    int side = 0;
    while (me.block >= args.first_block[side + 1]) ++side;
    const Work& work = args.work[side];
    const Share share = share_of(work, me.block - args.first_block[side]);
    const Stand stand = stand_of(work.shape, share.slice, me.thread);
    if (!stand.works) return;
    const Placement face(work.box, args.geometry.channels);
    const std::uint32_t first = share.first + static_cast<std::uint32_t>(stand.row);
    for (std::uint32_t item = first; item < work.items; item += share.step) {
      const Cell cell = cell_of(work, share.set, item);
      Lanes<N> da[1];
      GatherAny<T, N, max>::run(args.geometry, args.from, cell.n, cell.at, stand.channel, da);
      store_lanes(da[0], args.dfaces[side] + face.offset(cell.n, cell.at) + stand.channel);
    }
  }
};

}  // namespace halograd::cuda::chain
