#include "halograd/kernels/cpu/upsample.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace halograd::cpu {
namespace {

/// The inputs, one or two side by side, that an output reads along one dimension.
struct Taps {
  std::int64_t first;
  int count;
  std::array<float, 2> weights;
};

/// One dimension, in whole numbers so that every weight is the same on any grid and 0 only where it should be: output o
/// lies at position(o) / 2f of the inputs, held between the first and the last.
class Axis {
public:
  Axis(const UpsampleDesc& desc, const Window& window, int dimension)
      : nearest_(desc.kind == UpsampleKind::nearest),
        factor_(desc.factor[dimension]),
        padding_(window.padding[dimension]),
        kernel_(window.kernel[dimension]),
        last_(2 * factor_ * (desc.in_extent[dimension] - 1)),
        scale_(1.0F / static_cast<float>(2 * factor_)),
        out_lo_(desc.out.lo[dimension]),
        out_hi_(desc.out.hi[dimension]) {}

  [[nodiscard]] Taps taps(std::int64_t o) const {
    if (nearest_) return {o / factor_, 1, {1, 0}};
    const std::int64_t at = position(o);
    const std::int64_t first = at / (2 * factor_);
    const std::int64_t beyond = at - first * 2 * factor_;
    if (beyond == 0) return {first, 1, {1, 0}};
    return {first, 2, {static_cast<float>(2 * factor_ - beyond) * scale_, static_cast<float>(beyond) * scale_}};
  }

  [[nodiscard]] float weight(std::int64_t i, std::int64_t o) const {
    if (nearest_) return 1;
    const std::int64_t distance = std::abs(position(o) - i * 2 * factor_);
    return static_cast<float>(std::max<std::int64_t>(0, 2 * factor_ - distance)) * scale_;
  }

  /// This rank's outputs that an input reaches.
  [[nodiscard]] std::int64_t first_output(std::int64_t i) const { return std::max(out_lo_, i * factor_ - padding_); }
  [[nodiscard]] std::int64_t end_output(std::int64_t i) const {
    return std::min(out_hi_, i * factor_ - padding_ + kernel_);
  }

private:
  [[nodiscard]] std::int64_t position(std::int64_t o) const {
    return std::clamp<std::int64_t>(2 * o + 1 - factor_, 0, last_);
  }

  bool nearest_;
  std::int64_t factor_;
  std::int64_t padding_;
  std::int64_t kernel_;
  std::int64_t last_;
  float scale_;
  std::int64_t out_lo_;
  std::int64_t out_hi_;
};

/// Rows along w: where voxel w of one begins.
struct RowShape {
  explicit RowShape(const UpsampleDesc& desc)
      : channels(desc.channels),
        x_pitch(desc.src.pitch),
        y_pitch(desc.dst.pitch),
        x_first(desc.src.box.lo.w),
        y_first(desc.dst.box.lo.w) {}

  [[nodiscard]] std::int64_t x(std::int64_t w) const { return (w - x_first) * x_pitch; }
  [[nodiscard]] std::int64_t y(std::int64_t w) const { return (w - y_first) * y_pitch; }

  std::int64_t channels;
  std::int64_t x_pitch;
  std::int64_t y_pitch;
  std::int64_t x_first;
  std::int64_t y_first;
};

/// The one, two or four input rows that an output row reads.
template <typename T>
struct SourceRows {
  std::array<const T*, 4> rows;
  std::array<float, 4> weights;
  std::size_t count = 0;
};

template <std::size_t count, typename T>
[[gnu::always_inline]] inline void mix(const std::array<const T*, 8>& from, const std::array<float, 8>& weights,
                                       std::int64_t channels, T* __restrict to) {
  for (std::int64_t c = 0; c < channels; ++c) {
    float sum = weights[0] * static_cast<float>(from[0][c]);
    for (std::size_t i = 1; i < count; ++i) sum += weights[i] * static_cast<float>(from[i][c]);
    to[c] = T(sum);
  }
}

template <typename T>
HALOGRAD_MULTIVERSION void write_row(const Axis& axis, const RowShape& shape, const SourceRows<T>& source,
                                     std::int64_t begin, std::int64_t end, T* y) {
  for (std::int64_t o = begin; o < end; ++o) {
    const Taps taps = axis.taps(o);
    std::array<const T*, 8> from;
    std::array<float, 8> weights;
    std::size_t count = 0;
    for (std::size_t row = 0; row < source.count; ++row) {
      for (int tap = 0; tap < taps.count; ++tap) {
        from[count] = source.rows[row] + shape.x(taps.first + tap);
        weights[count++] = source.weights[row] * taps.weights[static_cast<std::size_t>(tap)];
      }
    }
    T* const to = y + shape.y(o);
    if (count == 1) mix<1>(from, weights, shape.channels, to);
    if (count == 2) mix<2>(from, weights, shape.channels, to);
    if (count == 4) mix<4>(from, weights, shape.channels, to);
    if (count == 8) mix<8>(from, weights, shape.channels, to);
  }
}

/// dx row += row_weight · what its voxels get from one output row.
template <typename T>
HALOGRAD_MULTIVERSION void gather_row(const Axis& axis, const RowShape& shape, float row_weight, const T* __restrict dy,
                                      std::int64_t begin, std::int64_t end, float* __restrict dx) {
  for (std::int64_t i = begin; i < end; ++i) {
    float* const sum = dx + shape.x(i);
    for (std::int64_t o = axis.first_output(i); o < axis.end_output(i); ++o) {
      const float weight = row_weight * axis.weight(i, o);
      const T* const from = dy + shape.y(o);
      for (std::int64_t c = 0; c < shape.channels; ++c) sum[c] += weight * static_cast<float>(from[c]);
    }
  }
}

HALOGRAD_MULTIVERSION
void round_row(const float* __restrict from, std::int64_t voxels, std::int64_t channels, std::int64_t pitch,
               Bf16* __restrict to) {
  for (std::int64_t i = 0; i < voxels; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) to[i * pitch + c] = Bf16(from[i * channels + c]);
  }
}

struct Axes {
  Axes(const UpsampleDesc& desc, const Window& window) : d(desc, window, 0), h(desc, window, 1), w(desc, window, 2) {}
  Axis d;
  Axis h;
  Axis w;
};

/// Calls `body(n, d, h)` for the rows of a box, spread over the threads.
template <typename Body>
void for_each_row(std::int64_t samples, const Box& box, const Body& body) {
  const Extent size = box.extent();
  parallel_for(box.empty() ? 0 : samples * size.d * size.h, [&](std::int64_t row) {
    body(row / (size.d * size.h), box.lo.d + row / size.h % size.d, box.lo.h + row % size.h);
  });
}

/// Voxels along w.
struct Run {
  std::int64_t n;
  std::int64_t d;
  std::int64_t h;
  std::int64_t begin;
  std::int64_t end;
};

/// dx of a run of inputs, in float, laid out as `shape` says.
template <typename T>
void gather_run(const UpsampleDesc& desc, const Axes& axes, const RowShape& shape, const Run& run, const T* dy,
                float* dx) {
  for (std::int64_t w = run.begin; w < run.end; ++w) std::fill_n(dx + shape.x(w), shape.channels, 0.0F);
  for (std::int64_t od = axes.d.first_output(run.d); od < axes.d.end_output(run.d); ++od) {
    for (std::int64_t oh = axes.h.first_output(run.h); oh < axes.h.end_output(run.h); ++oh) {
      const float weight = axes.d.weight(run.d, od) * axes.h.weight(run.h, oh);
      const T* const from = dy + desc.dst.offset(run.n, {od, oh, desc.dst.box.lo.w});
      gather_row(axes.w, shape, weight, from, run.begin, run.end, dx);
    }
  }
}

void gather(const UpsampleDesc& desc, const Axes& axes, const Run& row, const float* dy, float* dx) {
  gather_run(desc, axes, RowShape(desc), row, dy, dx + desc.src.offset(row.n, {row.d, row.h, desc.src.box.lo.w}));
}

/// Block by block in scratch memory, so that sums are rounded once.
void gather(const UpsampleDesc& desc, const Axes& axes, const Run& row, const Bf16* dy, Bf16* dx) {
  alignas(64) std::array<float, 4096> sums;
  const auto most = static_cast<std::int64_t>(sums.size());
  RowShape shape(desc);
  for (std::int64_t channel = 0; channel < desc.channels; channel += shape.channels) {
    shape.channels = shape.x_pitch = std::min(desc.channels - channel, most);
    Run run = row;
    for (; run.begin < row.end; run.begin = run.end) {
      run.end = std::min(row.end, run.begin + most / shape.channels);
      shape.x_first = run.begin;
      gather_run(desc, axes, shape, run, dy + channel, sums.data());
      round_row(sums.data(), run.end - run.begin, shape.channels, desc.src.pitch,
                dx + desc.src.offset(run.n, {run.d, run.h, run.begin}) + channel);
    }
  }
}

/// One row of outputs.
template <typename T>
void write(const UpsampleDesc& desc, const Axes& axes, std::int64_t n, std::int64_t d, std::int64_t h, const T* x,
           T* y) {
  const Taps planes = axes.d.taps(d);
  const Taps lines = axes.h.taps(h);
  SourceRows<T> source;
  for (int i = 0; i < planes.count; ++i) {
    for (int j = 0; j < lines.count; ++j) {
      source.rows[source.count] = x + desc.src.offset(n, {planes.first + i, lines.first + j, desc.src.box.lo.w});
      source.weights[source.count++] =
          planes.weights[static_cast<std::size_t>(i)] * lines.weights[static_cast<std::size_t>(j)];
    }
  }
  write_row(axes.w, RowShape(desc), source, desc.out.lo.w, desc.out.hi.w,
            y + desc.dst.offset(n, {d, h, desc.dst.box.lo.w}));
}

}  // namespace

void upsample(const UpsampleDesc& desc, const void* x, void* y) {
  const Axes axes(desc, upsample_window(desc.kind, desc.factor));
  with_activation_type(desc.type, [&]<typename T>(T) {
    for_each_row(desc.samples, desc.out, [&](std::int64_t n, std::int64_t d, std::int64_t h) {
      write(desc, axes, n, d, h, static_cast<const T*>(x), static_cast<T*>(y));
    });
  });
}

void upsample_backward(const UpsampleDesc& desc, const void* dy, void* dx) {
  const Axes axes(desc, upsample_window(desc.kind, desc.factor));
  with_activation_type(desc.type, [&]<typename T>(T) {
    for_each_row(desc.samples, desc.src.box, [&](std::int64_t n, std::int64_t d, std::int64_t h) {
      const Run row{n, d, h, desc.src.box.lo.w, desc.src.box.hi.w};
      gather(desc, axes, row, static_cast<const T*>(dy), static_cast<T*>(dx));
    });
  });
}

}  // namespace halograd::cpu
