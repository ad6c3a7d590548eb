#include "halograd/kernels/cpu/convert.hpp"

#include "halograd/core/parallel.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace halograd::cpu {
namespace {

/// Half of a float, as files of bf16 hold it.
struct Bf16 {
  std::uint16_t bits;
};

template <typename Source>
inline float to_float(Source value) {
  if constexpr (std::is_same_v<Source, Bf16>) {
    return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
  } else {
    return static_cast<float>(value);
  }
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

/// dst[i·stride] = transformed source[i] for a run; whether all of them are finite.
template <typename Source, bool Log1p>
bool convert_run(const Source* source, std::int64_t count, std::int64_t stride, float* dst) {
  using Bits = std::conditional_t<sizeof(Source) == 1, std::uint8_t, std::uint16_t>;
  const float* table = nullptr;
  if constexpr (Log1p && sizeof(Source) < 4) table = log1p_table<Source>();
  int bad = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    float value = 0;
    if constexpr (!Log1p) {
      value = to_float(source[i]);
    } else if constexpr (sizeof(Source) < 4) {
      value = table[std::bit_cast<Bits>(source[i])];
    } else {
      value = std::log1p(source[i]);
    }
    bad |= static_cast<int>(!(std::abs(value) <= std::numeric_limits<float>::max()));
    dst[i * stride] = value;
  }
  return bad == 0;
}

/// Rows of source ∩ dst along the width: all channels of a row are one run, or one run a channel.
template <typename Source, bool Log1p>
bool convert(const ConvertDesc& desc, const Source* source, float* dst) {
  const Box box = desc.source.intersect(desc.dst);
  if (box.empty()) return true;
  const Box from = box.relative_to(desc.source.lo);
  const Box to = box.relative_to(desc.dst.lo);
  const Extent from_extent = desc.source.extent();
  const Extent to_extent = desc.dst.extent();
  const Extent size = box.extent();
  std::atomic<bool> finite{true};
  parallel_for(size.d * size.h, [&](std::int64_t row) {
    const std::int64_t d = row / size.h;
    const std::int64_t h = row % size.h;
    const std::int64_t from_voxel = ((from.lo.d + d) * from_extent.h + from.lo.h + h) * from_extent.w + from.lo.w;
    float* to_row = dst + (((to.lo.d + d) * to_extent.h + to.lo.h + h) * to_extent.w + to.lo.w) * desc.channels;
    bool row_finite = true;
    if (!desc.channels_first) {
      row_finite = convert_run<Source, Log1p>(source + from_voxel * desc.channels, size.w * desc.channels, 1, to_row);
    } else {
      for (std::int64_t c = 0; c < desc.channels; ++c) {
        const Source* run = source + c * from_extent.volume() + from_voxel;
        row_finite = convert_run<Source, Log1p>(run, size.w, desc.channels, to_row + c) && row_finite;
      }
    }
    if (!row_finite) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

template <typename Source>
bool convert_as(const ConvertDesc& desc, const void* source, float* dst) {
  const auto* values = static_cast<const Source*>(source);
  return desc.transform == InputTransform::log1p ? convert<Source, true>(desc, values, dst)
                                                 : convert<Source, false>(desc, values, dst);
}

}  // namespace

bool convert_input(const ConvertDesc& desc, const void* source, float* dst) {
  switch (desc.dtype) {
    case DType::f32: return convert_as<float>(desc, source, dst);
    case DType::bf16: return convert_as<Bf16>(desc, source, dst);
    case DType::u16: return convert_as<std::uint16_t>(desc, source, dst);
    case DType::i16: return convert_as<std::int16_t>(desc, source, dst);
    case DType::u8: return convert_as<std::uint8_t>(desc, source, dst);
  }
  return false;
}

}  // namespace halograd::cpu
