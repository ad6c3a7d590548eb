#include "halograd/kernels/cpu/chain_backward.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cpu/chain_parts.hpp"
#include "halograd/kernels/cpu/chain_uses.hpp"

#include <algorithm>
#include <array>

namespace halograd::cpu {
namespace {

/// Runs of voxels along w whose gradient comes in pairs: voxels first + 2j and first + 2j + 1 from outputs j and j + 1.
struct Pairs {
  std::int64_t first = 0;   ///< voxel
  std::int64_t output = 0;  ///< that the first voxel belongs to
  std::int64_t count = 0;
  bool closed = false;  ///< no output follows that of the last pair
  [[nodiscard]] Range voxels() const { return {first, first + 2 * count}; }
};

std::int64_t half_rounded_up(std::int64_t value) {
  return value >= 0 ? (value + 1) / 2 : -(-value / 2);
}
std::int64_t half_rounded_down(std::int64_t value) {
  return -half_rounded_up(-value);
}

bool has_pairs(const ChainDesc& desc) {
  const std::int64_t kernel = desc.window.kernel.w;
  return desc.pool == PoolKind::average && desc.window.stride.w == 2 && (kernel == 2 || kernel == 3) &&
         desc.src.pitch == desc.channels && !desc.accumulate;
}

bool overlap(const ChainDesc& desc) {
  return desc.window.kernel.w == 3;
}

/// The pairs among the voxels `w` for average pooling of stride 2 with window 2 or 3.
Pairs pairs_of(const ChainDesc& desc, const Range& outputs, const Range& w) {
  // Output j alone reads its middle voxel (window 3) or its first (window 2): 2j + start.
  const std::int64_t start = (overlap(desc) ? 1 : 0) - desc.window.padding.w;
  const std::int64_t lo = std::max(outputs.lo, half_rounded_up(w.lo - start));
  const std::int64_t hi = std::min(outputs.hi, half_rounded_down(w.hi - 2 - start) + 1);
  if (hi <= lo) return {};
  return {2 * lo + start, lo, hi - lo, hi == outputs.hi};
}

/// Calls `body(n, d, h)` for the rows [begin, end) of the box, samples outermost.
template <typename Body>
void for_each_row(const Box& box, std::int64_t begin, std::int64_t end, const Body& body) {
  const Extent extent = box.extent();
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t plane = row / extent.h;
    body(plane / extent.d, box.lo.d + plane % extent.d, box.lo.h + row % extent.h);
  }
}

}  // namespace

template <typename T>
ChainBackward<T>::ChainBackward(const ChainDesc& desc)
    : desc_(desc), gather_(desc), scratch_(static_cast<std::size_t>(thread_count())) {
  const std::int64_t width = std::max({desc.in.extent().w, desc.faces.lo.w, desc.faces.hi.w});
  for (Scratch& scratch : scratch_) {
    scratch.gather = gather_.make_scratch();
    scratch.da.resize(static_cast<std::size_t>(width * desc.channels));
    scratch.sums.resize(static_cast<std::size_t>(2 * desc.channels));
  }
}

template <typename T>
std::int64_t ChainBackward<T>::held_bytes() const {
  std::int64_t bytes = 0;
  for (const Scratch& scratch : scratch_) {
    bytes +=
        bytes_of(scratch.gather.sum) + bytes_of(scratch.gather.copy) + bytes_of(scratch.da) + bytes_of(scratch.sums);
  }
  return bytes;
}

template <typename T>
void ChainBackward<T>::faces(const OutputGradient<T>& from, const FaceBuffers<T>& dfaces) {
  const auto fill = [&](T* buffer, const Box& box) {
    if (buffer == nullptr || box.empty()) return;
    const VoxelBuffer<T> face{buffer, {box, desc_.channels}};
    const Range w = range_of(box, 2);
    const std::int64_t rows = desc_.samples * box.extent().d * box.extent().h;
    const std::int64_t parts = part_count(rows * w.size() * desc_.channels, static_cast<std::int64_t>(scratch_.size()));
    for_each_part(parts, rows, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      Scratch& scratch = scratch_[static_cast<std::size_t>(part)];
      for_each_row(box, begin, end, [&](std::int64_t n, std::int64_t d, std::int64_t h) {
        const PlainUse<T> use{desc_.channels, scratch.da.data(), face.row(n, d, h, w.lo), false};
        const Row<float> da = use.target(0, w.size());
        if (desc_.pool == PoolKind::max) {
          gather_.gather_max(from, n, d, h, w, scratch.gather, da);
        } else {
          gather_.spread(gather_.reader_rows(from, n, d, h, w, false, scratch.gather), w, da);
        }
        use.gathered(0, w.size(), da);
      });
    });
  };
  for (int i = 0; i < 3; ++i) {
    fill(dfaces.lo[static_cast<std::size_t>(i)], face_box(desc_, i, Side::lo));
    fill(dfaces.hi[static_cast<std::size_t>(i)], face_box(desc_, i, Side::hi));
  }
}

template <typename T>
void ChainBackward<T>::sums(const BackwardCall<T>& call, const Box& part, double* plain, double* weighted) {
  if (part.empty() || call.samples.size() == 0) return;
  const VoxelBuffer<const T> y{call.y, desc_.src};
  const std::int64_t channels = desc_.channels;
  const std::int64_t rows = call.samples.size() * part.extent().d * part.extent().h;
  const std::int64_t parts =
      std::min(rows, part_count(rows * part.extent().w * channels, static_cast<std::int64_t>(scratch_.size())));
  for_each_part(parts, rows, [&](std::int64_t index, std::int64_t begin, std::int64_t end) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(index)];
    std::fill(scratch.sums.begin(), scratch.sums.end(), 0.0);
    for_each_row(part, begin, end, [&](std::int64_t n, std::int64_t d, std::int64_t h) {
      n += call.samples.lo;
      const SumsUse<T> use{{channels, scratch.da.data()},
                           call.activation,
                           y.row(n, d, h, desc_.in.lo.w),
                           scratch.sums.data(),
                           scratch.sums.data() + channels};
      visit_row(call, n, d, h, range_of(part, 2), scratch, use);
    });
  });
  for (std::int64_t index = 0; index < parts; ++index) {
    const double* partial = scratch_[static_cast<std::size_t>(index)].sums.data();
    for (std::int64_t c = 0; c < channels; ++c) plain[c] += partial[c];
    for (std::int64_t c = 0; c < channels; ++c) weighted[c] += partial[channels + c];
  }
}

template <typename T>
void ChainBackward<T>::data(const BackwardCall<T>& call, const Correction& correction, T* dy) {
  const VoxelBuffer<const T> y{call.y, desc_.src};
  const VoxelBuffer<T> result{dy, desc_.src};
  const std::int64_t w = desc_.in.lo.w;
  if (leaves_y_as_it_is(desc_)) {
    visit_own_rows(call, [&](std::int64_t n, std::int64_t d, std::int64_t h, Scratch& scratch) {
      return PlainUse<T>{desc_.channels, scratch.da.data(), result.row(n, d, h, w), desc_.accumulate};
    });
  } else {
    visit_own_rows(call, [&](std::int64_t n, std::int64_t d, std::int64_t h, Scratch& scratch) {
      return DataUse<T>{{desc_.channels, scratch.da.data()},
                        call.activation,
                        correction,
                        y.row(n, d, h, w),
                        result.row(n, d, h, w),
                        desc_.accumulate};
    });
  }
}

/// Hands each row of the rank's own voxels to what `make_use(n, d, h, scratch)` makes for it.
template <typename T>
template <typename MakeUse>
void ChainBackward<T>::visit_own_rows(const BackwardCall<T>& call, const MakeUse& make_use) {
  if (desc_.in.empty() || call.samples.size() == 0) return;
  const Extent extent = desc_.in.extent();
  const std::int64_t rows = call.samples.size() * extent.d * extent.h;
  const std::int64_t parts = part_count(rows * extent.w * desc_.channels, static_cast<std::int64_t>(scratch_.size()));
  for_each_part(parts, rows, [&](std::int64_t index, std::int64_t begin, std::int64_t end) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(index)];
    for_each_row(desc_.in, begin, end, [&](std::int64_t n, std::int64_t d, std::int64_t h) {
      n += call.samples.lo;
      visit_row(call, n, d, h, range_of(desc_.in, 2), scratch, make_use(n, d, h, scratch));
    });
  });
}

/// Hands the gradient of a row's voxels `w` to `use`: straight from the sum over readers where that is all there is to
/// it (no pooling, or pairs), gathered elsewhere.
template <typename T>
template <typename Use>
void ChainBackward<T>::visit_row(const BackwardCall<T>& call, std::int64_t n, std::int64_t d, std::int64_t h,
                                 const Range& w, Scratch& scratch, const Use& use) const {
  if (desc_.pool == PoolKind::max) return visit_gathered(call, {}, n, d, h, w, scratch, use);
  const ReaderRows<T> readers = gather_.reader_rows(call.from, n, d, h, w, !overlap(desc_), scratch.gather);
  Range done;
  readers.visit(
      [&](const auto* rows) { done = visit_direct(readers, rows, without_received(call.received, d, h, w), use); });
  if (done.size() == 0) return visit_gathered(call, readers, n, d, h, w, scratch, use);
  visit_gathered(call, readers, n, d, h, {w.lo, done.lo}, scratch, use);
  visit_gathered(call, readers, n, d, h, {done.hi, w.hi}, scratch, use);
}

/// Hands what the rows give to voxels of `w` straight to `use` and returns which voxels those were.
template <typename T>
template <typename Given, typename Use>
Range ChainBackward<T>::visit_direct(const ReaderRows<T>& readers, const Given* const* rows, const Range& w,
                                     const Use& use) const {
  const float slope = desc_.negative_slope;
  if (desc_.pool == PoolKind::none) {
    const Range done = w.intersect(readers.outputs);
    if (done.size() > 0) {
      const Row<const Given> da{rows[0] + (done.lo - readers.outputs.lo) * readers.pitch, readers.pitch};
      use.voxels(done.lo - desc_.in.lo.w, done.size(), {1, slope}, da);
    }
    return done;
  }
  if constexpr (Use::takes_pairs) {
    const Pairs pairs = has_pairs(desc_) ? pairs_of(desc_, readers.outputs, w) : Pairs{};
    if (pairs.count > 0) {
      std::array<const Given*, 4> from{};
      for (std::int64_t row = 0; row < readers.count; ++row) {
        from[static_cast<std::size_t>(row)] = rows[row] + (pairs.output - readers.outputs.lo) * desc_.channels;
      }
      const float share = gather_.share();
      use.pairs(pairs.first - desc_.in.lo.w, {pairs.count, desc_.channels, readers.count, overlap(desc_), pairs.closed},
                {share, slope * share}, from.data());
    }
    return pairs.voxels();
  }
  return {};
}

template <typename T>
template <typename Use>
void ChainBackward<T>::visit_gathered(const BackwardCall<T>& call, const ReaderRows<T>& readers, std::int64_t n,
                                      std::int64_t d, std::int64_t h, const Range& w, Scratch& scratch,
                                      const Use& use) const {
  if (w.size() == 0) return;
  const std::int64_t at = w.lo - desc_.in.lo.w;
  const Row<float> da = use.target(at, w.size());
  if (desc_.pool == PoolKind::max) {
    gather_.gather_max(call.from, n, d, h, w, scratch.gather, da);
  } else {
    gather_.spread(readers, w, da);
  }
  add_received(call.received, n, d, h, w, da);
  use.gathered(at, w.size(), da);
}

/// The voxels of `w` that no neighbour gave anything to: all but the ends, or none.
template <typename T>
Range ChainBackward<T>::without_received(const FaceBuffers<const T>& received, std::int64_t d, std::int64_t h,
                                         const Range& w) const {
  Range result = w;
  for (int i = 0; i < 3; ++i) {
    for (const Side side : {Side::lo, Side::hi}) {
      const auto& buffers = side == Side::lo ? received.lo : received.hi;
      const Box box = received_box(desc_, i, side);
      if (buffers[static_cast<std::size_t>(i)] == nullptr || !box.contains(Index{d, h, box.lo.w})) continue;
      if (i < 2) return {w.lo, w.lo};
      if (side == Side::lo) {
        result.lo = std::max(result.lo, box.hi.w);
      } else {
        result.hi = std::min(result.hi, box.lo.w);
      }
    }
  }
  return result;
}

template <typename T>
void ChainBackward<T>::add_received(const FaceBuffers<const T>& received, std::int64_t n, std::int64_t d,
                                    std::int64_t h, const Range& w, const Row<float>& da) const {
  for (int i = 0; i < 3; ++i) {
    for (const Side side : {Side::lo, Side::hi}) {
      const T* buffer = (side == Side::lo ? received.lo : received.hi)[static_cast<std::size_t>(i)];
      const Box box = received_box(desc_, i, side);
      const Range both = w.intersect(range_of(box, 2));
      if (buffer == nullptr || both.size() == 0 || !box.contains(Index{d, h, both.lo})) continue;
      const VoxelBuffer<const T> given{buffer, {box, desc_.channels}};
      row_kernels<MoveKernels<T, float>>().add_row({both.size(), desc_.channels}, given.row(n, d, h, both.lo),
                                                   from_voxel(da, both.lo - w.lo));
    }
  }
}

template class ChainBackward<float>;
template class ChainBackward<Bf16>;

}  // namespace halograd::cpu
