#pragma once

#include "halograd/core/error.hpp"
#include "halograd/kernels/conv3d.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

// A convolution in cuDNN's terms: its parts, which are boxes of outputs, and pieces of those, of few enough numbers.
// Nothing here knows CUDA.
namespace halograd::cuda {

/// A tensor as cuDNN is told of it, in the order N, C, D, H, W (weights O, I, kd, kh, kw); strides in elements.
struct TensorShape {
  std::array<std::int64_t, 5> dims{};
  std::array<std::int64_t, 5> strides{};
  friend constexpr bool operator==(const TensorShape&, const TensorShape&) = default;
};

/// Channels last: `extent` voxels out of a dense buffer of `buffer`. A single sample is told to be as long as its
/// voxels: engines want dense tensors, and what they can count.
constexpr TensorShape channels_last(std::int64_t samples, std::int64_t channels, const Extent& extent,
                                    const Extent& buffer) {
  const std::int64_t plane = buffer.h * buffer.w * channels;
  return {{samples, channels, extent.d, extent.h, extent.w},
          {(samples == 1 ? extent.d : buffer.d) * plane, 1, plane, buffer.w * channels, channels}};
}

/// A convolution over some of the voxels of its buffers: all that its windows touch, or a part of it.
struct ConvPart {
  Conv3dDesc desc;  ///< of the voxels alone; pad_lo from 0 up, and less than a stride of `in` behind the last window
  Extent in;        ///< of the buffers that hold them
  Extent out;
  std::int64_t x_offset = 0;  ///< elements before its first, in the buffers
  std::int64_t y_offset = 0;

  [[nodiscard]] constexpr TensorShape x() const { return channels_last(desc.samples, desc.in_channels, desc.in, in); }
  [[nodiscard]] constexpr TensorShape y() const {
    return channels_last(desc.samples, desc.out_channels, desc.out, out);
  }
  /// Of the packed weights [O,kd,kh,kw,I].
  [[nodiscard]] constexpr TensorShape w() const {
    return channels_last(desc.out_channels, desc.in_channels, desc.kernel, desc.kernel);
  }
  [[nodiscard]] constexpr std::int64_t x_elements() const { return desc.samples * desc.in_channels * desc.in.volume(); }
  [[nodiscard]] constexpr std::int64_t y_elements() const {
    return desc.samples * desc.out_channels * desc.out.volume();
  }
};

/// Input voxels from the first of the first window to the last of the last.
constexpr std::int64_t window_span(const Conv3dDesc& desc, int dimension) {
  return (desc.out[dimension] - 1) * desc.stride[dimension] + desc.kernel[dimension];
}

/// Zeros behind the last input voxel. cuDNN rounds the number of windows down, so that up to a stride less one more
/// than the last window needs are the same; then as many as before the first voxel, since more engines take that.
constexpr std::int64_t pad_hi(const Conv3dDesc& desc, int dimension) {
  const std::int64_t needed = window_span(desc, dimension) - desc.pad_lo[dimension] - desc.in[dimension];
  return std::clamp(desc.pad_lo[dimension], std::max<std::int64_t>(0, needed), needed + desc.stride[dimension] - 1);
}

/// The convolution without the input voxels before its first window and, where they are a stride or more, behind its
/// last. Throws UsageError where a window would read no input at all.
inline ConvPart whole_part(const Conv3dDesc& desc) {
  ConvPart part{.desc = desc, .in = desc.in, .out = desc.out};
  Index first;
  for (int i = 0; i < 3; ++i) {
    first[i] = std::max<std::int64_t>(0, -desc.pad_lo[i]);
    part.desc.pad_lo[i] = std::max<std::int64_t>(0, desc.pad_lo[i]);
    const std::int64_t span = window_span(desc, i) - part.desc.pad_lo[i];
    part.desc.in[i] = desc.in[i] - first[i];
    if (part.desc.in[i] >= span + desc.stride[i]) part.desc.in[i] = span;
    if (part.desc.in[i] < 1 || part.desc.pad_lo[i] >= desc.kernel[i] || span - part.desc.in[i] >= desc.kernel[i]) {
      throw UsageError(
          "a convolution of {} to {} voxels with a kernel of {} and {} zeros before them has windows "
          "without a voxel; give it the voxels that they cover",
          desc.in[i], desc.out[i], desc.kernel[i], desc.pad_lo[i]);
    }
  }
  part.x_offset = ((first.d * desc.in.h + first.h) * desc.in.w + first.w) * desc.in_channels;
  return part;
}

/// Whether every input voxel of the buffer is the part's, so that backward data leaves none unwritten.
constexpr bool covers_input(const ConvPart& part) {
  return part.desc.in == part.in;
}

/// Samples [first, end) of a part.
constexpr ConvPart samples_of(ConvPart part, std::int64_t first, std::int64_t end) {
  part.desc.samples = end - first;
  part.x_offset += first * part.in.volume() * part.desc.in_channels;
  part.y_offset += first * part.out.volume() * part.desc.out_channels;
  return part;
}

/// Elements between neighbours along a dimension of a channels-last buffer.
constexpr std::int64_t step_of(const Extent& buffer, std::int64_t channels, int dimension) {
  return channels * (dimension == 2 ? 1 : dimension == 1 ? buffer.w : buffer.h * buffer.w);
}

/// The outputs of a part in `box`, counted from its first, with all the inputs that they read.
constexpr ConvPart outputs_of(ConvPart part, const Box& box) {
  Conv3dDesc& desc = part.desc;
  for (int i = 0; i < 3; ++i) {
    if (box.lo[i] == 0 && box.hi[i] == desc.out[i]) continue;
    const std::int64_t window = box.lo[i] * desc.stride[i] - desc.pad_lo[i];
    const std::int64_t lo = std::max<std::int64_t>(0, window);
    const std::int64_t hi = std::min(desc.in[i], (box.hi[i] - 1) * desc.stride[i] - desc.pad_lo[i] + desc.kernel[i]);
    desc.in[i] = hi - lo;
    desc.out[i] = box.hi[i] - box.lo[i];
    desc.pad_lo[i] = lo - window;
    part.x_offset += lo * step_of(part.in, desc.in_channels, i);
    part.y_offset += box.lo[i] * step_of(part.out, desc.out_channels, i);
  }
  return part;
}

/// Output planes [first, end) of a part, with all the input planes that they read.
constexpr ConvPart output_planes(const ConvPart& part, std::int64_t first, std::int64_t end) {
  return outputs_of(part, {{first, 0, 0}, {end, part.desc.out.h, part.desc.out.w}});
}

/// Input planes [first, end) of a part, with all the output planes that read any of them: what backward data takes to
/// write whole sums. `first` is 0 or where a window begins, and there are at least a stride of planes.
constexpr ConvPart input_planes(ConvPart part, std::int64_t first, std::int64_t end) {
  Conv3dDesc& desc = part.desc;
  const std::int64_t reach = first + desc.pad_lo.d - desc.kernel.d + 1;  // where the first window may begin, padded
  const std::int64_t lo = std::max<std::int64_t>(0, (reach + desc.stride.d - 1) / desc.stride.d);
  const std::int64_t hi = std::min(desc.out.d, (end - 1 + desc.pad_lo.d) / desc.stride.d + 1);
  desc.in.d = end - first;
  desc.out.d = hi - lo;
  desc.pad_lo.d += first - lo * desc.stride.d;
  part.x_offset += first * part.in.h * part.in.w * desc.in_channels;
  part.y_offset += lo * part.out.h * part.out.w * desc.out_channels;
  return part;
}

/// A part cut into at least so many `pieces` where there are as many samples or planes: by samples first, then
/// each sample in depth; by output planes for forward and backward weights, by input planes for backward data.
inline std::vector<ConvPart> cut(const ConvPart& whole, std::int64_t pieces, bool by_input) {
  const std::int64_t groups = std::min(whole.desc.samples, pieces);
  const std::int64_t planes = by_input ? whole.desc.in.d : whole.desc.out.d;
  const std::int64_t thinnest = by_input ? whole.desc.stride.d : 1;
  const std::int64_t slabs = std::max<std::int64_t>(1, std::min((pieces + groups - 1) / groups, planes / thinnest));
  std::vector<ConvPart> result;
  for (std::int64_t group = 0; group < groups; ++group) {
    const ConvPart part =
        samples_of(whole, whole.desc.samples * group / groups, whole.desc.samples * (group + 1) / groups);
    if (slabs == 1) {
      result.push_back(part);
      continue;
    }
    std::int64_t first = 0;
    for (std::int64_t slab = 0; slab < slabs; ++slab) {
      std::int64_t end = planes * (slab + 1) / slabs;
      if (by_input && slab + 1 < slabs) {
        end -= (end + whole.desc.pad_lo.d) % whole.desc.stride.d;
        if (end - first < thinnest) continue;
      }
      result.push_back(by_input ? input_planes(part, first, end) : output_planes(part, first, end));
      first = end;
    }
  }
  return result;
}

/// The fewest pieces of which none has a `size` above `most`; as many as there can be where no cut is fine enough.
template <typename Size>
std::int64_t pieces_up_to(const ConvPart& whole, bool by_input, std::int64_t most, const Size& size) {
  const std::int64_t finest = whole.desc.samples * (by_input ? whole.desc.in.d : whole.desc.out.d);
  const auto largest = [&](std::int64_t pieces) {
    std::int64_t result = 0;
    for (const ConvPart& piece : cut(whole, pieces, by_input)) result = std::max(result, size(piece));
    return result;
  };
  // Pieces overlap, so that this many may not be enough.
  std::int64_t pieces = std::clamp<std::int64_t>((size(whole) + most - 1) / most, 1, finest);
  while (pieces < finest && largest(pieces) > most) ++pieces;
  return pieces;
}

/// What cuDNN's engines can count: with more elements in a tensor only its slowest is left.
constexpr std::int64_t most_elements = (std::int64_t{1} << 31) - 1;

/// Into how many pieces a convolution has to be cut for its tensors to be counted.
inline std::int64_t fewest_pieces(const ConvPart& whole, bool by_input) {
  return pieces_up_to(whole, by_input, most_elements,
                      [](const ConvPart& part) { return std::max(part.x_elements(), part.y_elements()); });
}

/// Pieces that are small enough for a copy of a piece's x and y, in f32 and with channels filled up to 8, to fit into
/// `bytes`: what engines take as workspace that convert their operands.
inline std::int64_t pieces_within(const ConvPart& whole, bool by_input, std::int64_t bytes) {
  const auto filled = [](std::int64_t channels) { return (channels + 7) / 8 * 8; };
  return pieces_up_to(whole, by_input, bytes, [&](const ConvPart& part) {
    const Conv3dDesc& desc = part.desc;
    return 4 * desc.samples *
           (filled(desc.in_channels) * desc.in.volume() + filled(desc.out_channels) * desc.out.volume());
  });
}

}  // namespace halograd::cuda
