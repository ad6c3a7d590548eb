#include "halograd/kernels/cpu/convert.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace halograd::cpu {
namespace {

template <typename Source>
inline float to_float(Source value) {
  return static_cast<float>(value);
}

/// log(1 + x) of every value an integer type of at most 16 bits takes, indexed by its bits.
template <typename Source>
const float* log1p_table() {
  using Bits = std::conditional_t<sizeof(Source) == 1, std::uint8_t, std::uint16_t>;
  static const std::vector<float> table = [] {
    std::vector<float> values(std::size_t{1} << (8 * sizeof(Source)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = std::bit_cast<Source>(static_cast<Bits>(i));
      values[i] = static_cast<float>(std::log1p(static_cast<double>(to_float(value))));
    }
    return values;
  }();
  return table.data();
}

// What one number becomes. With numbers that are not finite the results are neither.

template <typename Source>
struct Linear {
  float factor;
  float constant;
  explicit Linear(const ConvertDesc& desc)
      : factor(static_cast<float>(desc.scale * desc.gain)),
        constant(static_cast<float>(desc.offset * desc.gain + desc.shift)) {}
  float operator()(Source x) const { return to_float(x) * factor + constant; }
};

template <typename Source>
struct Log1p {
  float scale;
  float offset;
  float gain;
  float shift;
  explicit Log1p(const ConvertDesc& desc)
      : scale(static_cast<float>(desc.scale)),
        offset(static_cast<float>(desc.offset)),
        gain(static_cast<float>(desc.gain)),
        shift(static_cast<float>(desc.shift)) {}
  float operator()(Source x) const { return std::log1p(to_float(x) * scale + offset) * gain + shift; }
};

/// Of numbers that mean themselves.
template <typename Source>
struct TabulatedLog1p {
  using Bits = std::conditional_t<sizeof(Source) == 1, std::uint8_t, std::uint16_t>;
  const float* table = log1p_table<Source>();
  float gain;
  float shift;
  explicit TabulatedLog1p(const ConvertDesc& desc)
      : gain(static_cast<float>(desc.gain)), shift(static_cast<float>(desc.shift)) {}
  float operator()(Source x) const { return table[std::bit_cast<Bits>(x)] * gain + shift; }
};

template <typename Source>
struct Windowed {
  float factor;
  float constant;
  float gain;
  float shift;
  explicit Windowed(const ConvertDesc& desc)
      : gain(static_cast<float>(desc.gain)), shift(static_cast<float>(desc.shift)) {
    const auto [low, high] = desc.window;
    factor = static_cast<float>(2 * desc.scale / (high - low));
    constant = static_cast<float>(2 * (desc.offset - low) / (high - low) - 1);
  }
  float operator()(Source x) const {
    const float value = to_float(x) * factor + constant;
    // The difference is 0 for a number, and else not a number, which clipping would hide.
    return std::min(std::max(value, -1.0F), 1.0F) * gain + (shift + (value - value));
  }
};

/// dst = what a number of the source becomes; 1 where that is not finite.
template <typename Source, typename Map>
[[gnu::always_inline]] inline int convert_number(const Map& map, Source number, float& dst) {
  const float value = map(number);
  dst = value;
  return static_cast<int>(!(std::abs(value) <= std::numeric_limits<float>::max()));
}

/// dst[i·stride] = what source[i·step] becomes, for a run; whether all of them are finite.
template <typename Source, typename Map>
bool convert_run(const Map& map, const Source* source, std::int64_t step, std::int64_t count, std::int64_t stride,
                 float* dst) {
  int bad = 0;
  if (step == 1 && stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) bad |= convert_number(map, source[i], dst[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) bad |= convert_number(map, source[i * step], dst[i * stride]);
  }
  return bad == 0;
}

HALOGRAD_MULTIVERSION
void round_run(const float* __restrict source, std::int64_t count, std::int64_t stride, Bf16* __restrict dst) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = Bf16(source[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) dst[i * stride] = Bf16(source[i]);
  }
}

/// Likewise for bf16, by way of float.
template <typename Source, typename Map>
bool convert_run(const Map& map, const Source* source, std::int64_t step, std::int64_t count, std::int64_t stride,
                 Bf16* dst) {
  std::array<float, 512> block;
  const auto most = static_cast<std::int64_t>(block.size());
  bool finite = true;
  for (std::int64_t first = 0; first < count; first += most) {
    const std::int64_t size = std::min(most, count - first);
    finite = convert_run(map, source + first * step, step, size, 1, block.data()) && finite;
    round_run(block.data(), size, stride, dst + first * stride);
  }
  return finite;
}

/// Where the source holds what goes to place `at` of a dimension.
std::int64_t place_of(std::int64_t at, std::int64_t extent, bool flipped) {
  return flipped ? extent - 1 - at : at;
}

/// Rows of source ∩ dst along the width: all channels of a row are one run, or one run a channel.
template <typename Source, typename T, typename Map>
bool convert(const ConvertDesc& desc, const Map& map, const Source* source, T* dst) {
  const Box box = desc.source.intersect(desc.dst);
  if (box.empty()) return true;
  const Box from = box.relative_to(desc.source.lo);
  const Box to = box.relative_to(desc.dst.lo);
  const Extent from_extent = desc.source.extent();
  const Extent to_extent = desc.dst.extent();
  const Extent size = box.extent();
  const std::int64_t channels = desc.channels;
  const std::int64_t direction = desc.flip[2] ? -1 : 1;
  const std::int64_t first = place_of(from.lo.w, from_extent.w, desc.flip[2]);
  std::atomic<bool> finite{true};
  parallel_for(size.d * size.h, [&](std::int64_t row) {
    const std::int64_t d = row / size.h;
    const std::int64_t h = row % size.h;
    const std::int64_t plane = place_of(from.lo.d + d, from_extent.d, desc.flip[0]);
    const std::int64_t line = plane * from_extent.h + place_of(from.lo.h + h, from_extent.h, desc.flip[1]);
    const std::int64_t voxel = line * from_extent.w + first;
    T* to_row = dst + (((to.lo.d + d) * to_extent.h + to.lo.h + h) * to_extent.w + to.lo.w) * channels;
    bool row_finite = true;
    if (!desc.channels_first && (direction == 1 || channels == 1)) {
      row_finite = convert_run(map, source + voxel * channels, direction, size.w * channels, 1, to_row);
    } else {
      const std::int64_t voxel_step = desc.channels_first ? 1 : channels;
      const std::int64_t channel_step = desc.channels_first ? from_extent.volume() : 1;
      for (std::int64_t c = 0; c < channels; ++c) {
        const Source* run = source + c * channel_step + voxel * voxel_step;
        row_finite = convert_run(map, run, direction * voxel_step, size.w, channels, to_row + c) && row_finite;
      }
    }
    if (!row_finite) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

template <typename Source, typename T>
bool convert_as(const ConvertDesc& desc, const void* source, T* dst) {
  const auto* values = static_cast<const Source*>(source);
  if (desc.transform == InputTransform::window) return convert(desc, Windowed<Source>(desc), values, dst);
  if (desc.transform == InputTransform::none) return convert(desc, Linear<Source>(desc), values, dst);
  if constexpr (sizeof(Source) < 4) {
    const bool plain = desc.scale == 1 && desc.offset == 0;
    if (plain) return convert(desc, TabulatedLog1p<Source>(desc), values, dst);
  }
  return convert(desc, Log1p<Source>(desc), values, dst);
}

template <typename T>
bool convert_into(const ConvertDesc& desc, const void* source, T* dst) {
  switch (desc.dtype) {
    case DType::f32: return convert_as<float>(desc, source, dst);
    case DType::bf16: return convert_as<Bf16>(desc, source, dst);
    case DType::u16: return convert_as<std::uint16_t>(desc, source, dst);
    case DType::i16: return convert_as<std::int16_t>(desc, source, dst);
    case DType::u8: return convert_as<std::uint8_t>(desc, source, dst);
  }
  return false;
}

}  // namespace

bool convert_input(const ConvertDesc& desc, const void* source, void* dst) {
  return with_activation_type(desc.dst_type,
                              [&]<typename T>(T) { return convert_into(desc, source, static_cast<T*>(dst)); });
}

int convert_labels(const LabelDesc& desc, const std::uint8_t* source, std::uint8_t* dst) {
  const Extent& extent = desc.extent;
  std::atomic<int> wrong{-1};
  parallel_for(extent.d * extent.h, [&](std::int64_t row) {
    const std::int64_t d = place_of(row / extent.h, extent.d, desc.flip[0]);
    const std::int64_t h = place_of(row % extent.h, extent.h, desc.flip[1]);
    const std::uint8_t* const from = source + (d * extent.h + h) * extent.w;
    std::uint8_t* const to = dst + row * extent.w;
    if (desc.flip[2]) {
      std::reverse_copy(from, from + extent.w, to);
    } else {
      std::copy_n(from, extent.w, to);
    }
    int largest = -1;
    for (std::int64_t w = 0; w < extent.w; ++w) {
      const bool right = to[w] < desc.classes || to[w] == desc.ignore_label;
      largest = std::max(largest, right ? -1 : static_cast<int>(to[w]));
    }
    int seen = wrong.load(std::memory_order_relaxed);
    while (largest > seen && !wrong.compare_exchange_weak(seen, largest, std::memory_order_relaxed)) {
    }
  });
  return wrong.load();
}

}  // namespace halograd::cpu
