#pragma once

#include "halograd/kernels/cuda/chain_backward.hpp"

namespace halograd::cuda::chain {

// Two sums a channel over the voxels of a box. Each block sums its own and leaves them in `partial`; a second kernel
// adds the blocks' up. Everything is added in an order that depends on shapes and the kind of GPU alone.

/// Cells a thread should sum at least, so that few blocks' sums are left to be merged.
constexpr std::int32_t least_summed = 8;

/// Where a block leaves its sums: [sets, blocks, 2, channels padded].
constexpr std::int64_t partial_offset(const Work& work, const Share& share) {
  return (std::int64_t{share.set} * work.set_blocks + share.place) * 2 * work.shape.padded_channels();
}
constexpr std::int64_t partial_count(const Work& work) {
  return std::int64_t{work.sets} * work.set_blocks * 2 * work.shape.padded_channels();
}

/// What the rows of a block have in shared memory: [rows, 2, slice_channels] values, and then [parts, 2,
/// slice_channels] totals in double.
template <typename Value, int N>
struct RowSums {
  alignas(16) Value values[block_threads * 2 * N];
  double totals[2 * block_threads];
};

template <typename Value, int N>
constexpr void publish_row(const BlockShape& shape, const Stand& stand, const Value (&first)[N],
                           const Value (&second)[N], RowSums<Value, N>& shared) {
  if (stand.row >= shape.rows) return;
  Value* const to = shared.values + stand.row * 2 * shape.slice_channels() + stand.column * N;
  for (int i = 0; i < N; ++i) to[i] = first[i];
  for (int i = 0; i < N; ++i) to[shape.slice_channels() + i] = second[i];
}

/// Adds the rows up, each thread one or two of the slice's sums, or where there are more threads than sums, a part of
/// the rows.
struct RowCollector {
  double total[2] = {};

  template <typename Value, int N>
  constexpr void collect(const BlockShape& shape, std::uint32_t thread, const RowSums<Value, N>& shared) {
    const std::int32_t sums = 2 * shape.slice_channels();
    const std::int32_t parts = part_count(sums);
    for (int i = 0; i < 2; ++i) {
      const std::int32_t at = static_cast<std::int32_t>(thread) + i * block_threads;
      if (at >= parts * sums) break;
      for (std::int32_t row = at / sums; row < shape.rows; row += parts) {
        total[i] += static_cast<double>(shared.values[row * sums + at % sums]);
      }
    }
  }

  template <typename Value, int N>
  constexpr void publish(const BlockShape& shape, std::uint32_t thread, RowSums<Value, N>& shared) const {
    const std::int32_t count = part_count(2 * shape.slice_channels()) * 2 * shape.slice_channels();
    for (int i = 0; i < 2; ++i) {
      const std::int32_t at = static_cast<std::int32_t>(thread) + i * block_threads;
      if (at < count) shared.totals[at] = total[i];
    }
  }

  /// Parts of the rows that are added at once.
  static constexpr std::int32_t part_count(std::int32_t sums) {
    return sums < block_threads ? block_threads / sums : 1;
  }
};

/// The block's sums from its parts, into `partial`.
template <typename Value, int N>
constexpr void write_partial(const Work& work, const Share& share, std::uint32_t thread,
                             const RowSums<Value, N>& shared, double* partial) {
  const std::int32_t channels = work.shape.slice_channels();
  const std::int32_t parts = RowCollector::part_count(2 * channels);
  for (std::int32_t at = static_cast<std::int32_t>(thread); at < 2 * channels; at += block_threads) {
    double sum = 0;
    for (std::int32_t part = 0; part < parts; ++part) sum += shared.totals[part * 2 * channels + at];
    const std::int32_t quantity = at / channels;
    const std::int32_t c = share.slice * channels + at % channels;
    partial[partial_offset(work, share) + quantity * work.shape.padded_channels() + c] = sum;
  }
}

/// Σ dz and Σ dz·(y − mean): in float over runs of voxels, those added in double.
template <typename T, int N, typename Gather>
struct BackwardSums {
  using Args = BackwardArgs<T>;
  struct Shared {
    ChannelTable table;
    RowSums<float, N> rows;
  };
  struct Thread {
    std::uint32_t block = 0;
    std::uint32_t thread = 0;
    RowCollector collector;
  };
  static constexpr int threads = block_threads;
  static constexpr int blocks_per_processor = N == 8 ? 2 : Gather::blocks_per_processor;
  static constexpr int width = Gather::width;
  static constexpr std::uint32_t run_cells = 32 / width;

  template <typename Team>
  static constexpr void run(Team& team, const Args& args, Shared& shared) {
    team.each([&](Thread& me) { fill_table(args, me.block, me.thread, shared.table); });
    const Work& work = args.work;
    const Share share = share_of(work, team.block());
    for (std::uint32_t base = share.first; base < work.items; base += run_cells * share.step) {
      team.each([&](Thread& me) { sum_run(args, share, base, me, shared); });
      team.each([&](Thread& me) { me.collector.collect(work.shape, me.thread, shared.rows); });
    }
    team.each([&](Thread& me) { me.collector.publish(work.shape, me.thread, shared.rows); });
    team.last([&](Thread& me) { write_partial(work, share, me.thread, shared.rows, args.partial); });
  }

private:
  static constexpr void sum_run(const Args& args, const Share& share, std::uint32_t base, const Thread& me,
                                Shared& shared) {
    const Work& work = args.work;
    const Stand stand = stand_of(work.shape, share.slice, me.thread);
    float plain[N] = {};
    float weighted[N] = {};
    std::uint32_t item = base + static_cast<std::uint32_t>(stand.row);
    for (std::uint32_t i = 0; stand.works && i < run_cells && item < work.items; ++i, item += share.step) {
      const Cell cell = cell_of(work, share.set, item);
      const auto input = load_cell<N, width>(args, cell, stand.channel);
      Lanes<N> da[width];
      Gather::run(args.geometry, args.from, cell.n, cell.at, stand.channel, da);
      unrolled<width>([&](auto v) {
        if (!input.inside[v]) return;
        const Point at{cell.at.d, cell.at.h, cell.at.w + v};
        if (args.any_received) add_received(args.geometry, args.received, cell.n, at, stand.channel, da[v]);
        add_voxel(args.geometry, shared.table, stand, input.y[v], da[v], plain, weighted);
      });
    }
    publish_row(work.shape, stand, plain, weighted, shared.rows);
  }

  static constexpr void add_voxel(const Geometry& g, const ChannelTable& table, const Stand& stand,
                                  const Packet<T, N>& y, const Lanes<N>& da, float (&plain)[N], float (&weighted)[N]) {
    const Lanes<N> values = reads_y(g) ? widen(y) : all_lanes<N>(0);
    const auto gradient = through_activation(table, stand.column * N, g.slope, values, da);
    for (int i = 0; i < N; ++i) {
      plain[i] += gradient.dz.at[i];
      weighted[i] += gradient.dz.at[i] * gradient.centred.at[i];
    }
  }
};

template <typename T>
struct MomentsArgs {
  Geometry geometry;
  Work work;
  const T* y = nullptr;
  double* partial = nullptr;
};

/// What values of a channel are counted from in their moments: one of them, so that nothing cancels.
template <typename T>
constexpr double origin_of(const Geometry& g, const T* y, std::int32_t set, std::int32_t c) {
  return static_cast<double>(load_lanes<1>(y + g.src.offset(set * set_samples(g), g.in.lo) + c).at[0]);
}

/// Σ (y − origin) and Σ (y − origin)².
template <typename T, int N>
struct Moments {
  using Args = MomentsArgs<T>;
  using Shared = RowSums<double, N>;
  struct Thread {
    std::uint32_t block = 0;
    std::uint32_t thread = 0;
    RowCollector collector;
  };
  static constexpr int threads = block_threads;
  static constexpr int blocks_per_processor = 2;
  /// Voxels loaded before the first is worked on.
  static constexpr int batch = 4;

  template <typename Team>
  static constexpr void run(Team& team, const Args& args, Shared& shared) {
    const Work& work = args.work;
    const Share share = share_of(work, team.block());
    team.each([&](Thread& me) { sum(args, share, me, shared); });
    team.each([&](Thread& me) { me.collector.collect(work.shape, me.thread, shared); });
    team.each([&](Thread& me) { me.collector.publish(work.shape, me.thread, shared); });
    team.last([&](Thread& me) { write_partial(work, share, me.thread, shared, args.partial); });
  }

private:
  static constexpr void sum(const Args& args, const Share& share, const Thread& me, Shared& shared) {
    const Work& work = args.work;
    const Stand stand = stand_of(work.shape, share.slice, me.thread);
    double origin[N] = {};
    double first[N] = {};
    double second[N] = {};
    for (int i = 0; stand.works && i < N; ++i) {
      origin[i] = origin_of(args.geometry, args.y, share.set, stand.channel + i);
    }
    std::uint32_t item = share.first + static_cast<std::uint32_t>(stand.row);
    for (; stand.works && item < work.items; item += batch * share.step) {
      Packet<T, N> y[batch];
      unrolled<batch>([&](auto i) {
        const std::uint32_t at = item + i() * share.step;
        if (at >= work.items) return;
        const Cell cell = cell_of(work, share.set, at);
        y[i] = load_packet<N>(args.y + args.geometry.src.offset(cell.n, cell.at) + stand.channel);
      });
      unrolled<batch>([&](auto i) {
        if (item + i() * share.step < work.items) add(widen(y[i]), origin, first, second);
      });
    }
    publish_row(work.shape, stand, first, second, shared);
  }

  static constexpr void add(const Lanes<N>& y, const double (&origin)[N], double (&first)[N], double (&second)[N]) {
    for (int i = 0; i < N; ++i) {
      const double distance = static_cast<double>(y.at[i]) - origin[i];
      first[i] += distance;
      second[i] += distance * distance;
    }
  }
};

/// The blocks' sums, added up: 32 channels a block, of which 32 threads each add every 32nd block's.
struct Merge {
  static constexpr int channels = 32;
  static constexpr int parts = 32;
  struct Shared {
    double sums[2][parts][channels];
  };
  struct Thread {
    std::uint32_t block = 0;
    std::uint32_t thread = 0;

    [[nodiscard]] constexpr std::int32_t column() const { return static_cast<std::int32_t>(thread) % channels; }
    [[nodiscard]] constexpr std::int32_t part() const { return static_cast<std::int32_t>(thread) / channels; }
  };

  const double* partial = nullptr;
  std::int32_t sets = 0;
  std::int32_t set_blocks = 0;
  std::int32_t channel_count = 0;
  std::int32_t padded_channels = 0;

  [[nodiscard]] constexpr std::int32_t set_merges() const { return divided_up(channel_count, channels); }
  [[nodiscard]] constexpr std::int64_t blocks() const { return std::int64_t{sets} * set_merges(); }
  [[nodiscard]] constexpr std::int32_t set_of(const Thread& me) const {
    return static_cast<std::int32_t>(me.block) / set_merges();
  }
  [[nodiscard]] constexpr std::int32_t channel_of(const Thread& me) const {
    return static_cast<std::int32_t>(me.block) % set_merges() * channels + me.column();
  }

  constexpr void add_part(const Thread& me, Shared& shared) const {
    const std::int32_t c = channel_of(me);
    double sums[2] = {};
    for (std::int32_t block = me.part(); c < channel_count && block < set_blocks; block += parts) {
      const double* from = partial + (std::int64_t{set_of(me)} * set_blocks + block) * 2 * padded_channels + c;
      sums[0] += from[0];
      sums[1] += from[padded_channels];
    }
    for (int i = 0; i < 2; ++i) shared.sums[i][me.part()][me.column()] = sums[i];
  }
  static constexpr double sum(const Shared& shared, int quantity, const Thread& me) {
    double total = 0;
    for (int part = 0; part < parts; ++part) total += shared.sums[quantity][part][me.column()];
    return total;
  }
};

constexpr Merge merge_of(const Geometry& g, const Work& work, const double* partial) {
  return {partial, set_count(g), work.set_blocks, g.channels, work.shape.padded_channels()};
}

/// Adds the chain's two sums to `sums`.
struct MergeSums {
  struct Args {
    Geometry geometry;
    Merge merge;
    Normalisation norm;
    double* sums = nullptr;
  };
  using Shared = Merge::Shared;
  using Thread = Merge::Thread;
  static constexpr int threads = Merge::channels * Merge::parts;
  static constexpr int blocks_per_processor = 1;

  template <typename Team>
  static constexpr void run(Team& team, const Args& args, Shared& shared) {
    team.each([&](Thread& me) { args.merge.add_part(me, shared); });
    team.last([&](Thread& me) {
      const std::int32_t c = args.merge.channel_of(me);
      if (me.part() != 0 || c >= args.geometry.channels) return;
      const std::int64_t channels = args.geometry.channels;
      const std::int64_t set = args.merge.set_of(me);
      const double scale =
          args.geometry.normalise ? static_cast<double>(args.norm.inverse_deviation[set * channels + c]) : 1.0;
      args.sums[2 * set * channels + c] += Merge::sum(shared, 0, me);
      args.sums[(2 * set + 1) * channels + c] += scale * Merge::sum(shared, 1, me);
    });
  }
};

/// Mean and M2 from sums of distances from an origin and of their squares (in double, the origin among the values).
template <typename T>
struct MergeMoments {
  struct Args {
    Geometry geometry;
    Merge merge;
    const T* y = nullptr;
    double* mean = nullptr;
    double* m2 = nullptr;
  };
  using Shared = Merge::Shared;
  using Thread = Merge::Thread;
  static constexpr int threads = Merge::channels * Merge::parts;
  static constexpr int blocks_per_processor = 1;

  template <typename Team>
  static constexpr void run(Team& team, const Args& args, Shared& shared) {
    team.each([&](Thread& me) { args.merge.add_part(me, shared); });
    team.last([&](Thread& me) {
      const std::int32_t c = args.merge.channel_of(me);
      if (me.part() != 0 || c >= args.geometry.channels) return;
      const std::int32_t set = args.merge.set_of(me);
      const std::int64_t at = std::int64_t{set} * args.geometry.channels + c;
      const double voxels = set_voxels(args.geometry);
      const double apart = voxels > 0 ? Merge::sum(shared, 0, me) / voxels : 0;
      const double m2 = Merge::sum(shared, 1, me) - voxels * apart * apart;
      args.mean[at] = voxels > 0 ? origin_of(args.geometry, args.y, set, c) + apart : 0;
      args.m2[at] = m2 > 0 || m2 != m2 ? m2 : 0;
    });
  }
};

}  // namespace halograd::cuda::chain
