#pragma once

#include "halograd/core/bf16.hpp"
#include "halograd/kernels/convert.hpp"
#include "halograd/kernels/cuda/nest.hpp"
#include "halograd/kernels/cuda/packet.hpp"

#include <cmath>
#include <limits>

namespace halograd::cuda {

/// What one number becomes, with constants worked out in double.
struct ConvertNumber {
  InputTransform transform = InputTransform::none;
  float factor = 1;
  float constant = 0;
  float gain = 1;
  float shift = 0;

  constexpr explicit ConvertNumber(const ConvertDesc& desc)
      : transform(desc.transform),
        factor(static_cast<float>(desc.scale)),
        constant(static_cast<float>(desc.offset)),
        gain(static_cast<float>(desc.gain)),
        shift(static_cast<float>(desc.shift)) {
    const auto [low, high] = desc.window;
    if (transform == InputTransform::none) {
      factor = static_cast<float>(desc.scale * desc.gain);
      constant = static_cast<float>(desc.offset * desc.gain + desc.shift);
    }
    if (transform == InputTransform::window) {
      factor = static_cast<float>(2 * desc.scale / (high - low));
      constant = static_cast<float>(2 * (desc.offset - low) / (high - low) - 1);
    }
  }

  /// `finite` becomes false where the number isn't, with scale and offset and transformed.
  constexpr float operator()(float x, bool& finite) const {
    float value = x * factor + constant;
    if (transform == InputTransform::log1p) value = std::log1p(value);
    // Before clipping, which would hide it.
    finite = finite && value >= -std::numeric_limits<float>::max() && value <= std::numeric_limits<float>::max();
    if (transform == InputTransform::none) return value;
    if (transform == InputTransform::window) value = value < -1.0F ? -1.0F : value > 1.0F ? 1.0F : value;
    return value * gain + shift;
  }
};

struct ConvertLoops {
  Loops loops;
  std::int64_t from = 0;  ///< the first number's place in the source
  std::int64_t to = 0;    ///< and in the destination
};

/// The loops over source ∩ dst, which must not be empty; along flipped dimensions the source's steps are negative.
constexpr ConvertLoops convert_loops(const ConvertDesc& desc) {
  const Box box = desc.source.intersect(desc.dst);
  const Extent size = box.extent();
  const Extent source = desc.source.extent();
  const Extent dst = desc.dst.extent();
  const std::int64_t voxel = desc.channels_first ? 1 : desc.channels;
  Extent from{source.h * source.w * voxel, source.w * voxel, voxel};
  const Extent to{dst.h * dst.w * desc.channels, dst.w * desc.channels, desc.channels};
  std::int64_t from_first = 0;
  std::int64_t to_first = 0;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t place = box.lo[i] - desc.source.lo[i];
    const bool flipped = desc.flip[static_cast<std::size_t>(i)];
    from_first += (flipped ? source[i] - 1 - place : place) * from[i];
    to_first += (box.lo[i] - desc.dst.lo[i]) * to[i];
    if (flipped) from[i] = -from[i];
  }
  const std::int64_t channel = desc.channels_first ? source.volume() : 1;
  return {{{desc.channels, channel, 1}, {size.w, from.w, to.w}, {size.h, from.h, to.h}, {size.d, from.d, to.d}},
          from_first,
          to_first};
}

/// Converts units of `width` numbers.
template <typename Source, typename T, int width>
struct ConvertUnits {
  ConvertNumber becomes;
  Nest nest;
  const Source* from = nullptr;
  T* to = nullptr;
  std::uint32_t* refused = nullptr;

  constexpr void operator()(std::uint32_t item) const {
    const Nest::Place place = nest.place(item);
    const std::array<Source, width> numbers = load_run<width>(from + place.from);
    std::array<T, width> values;
    bool finite = true;
    for (std::size_t i = 0; i < width; ++i) values[i] = T(becomes(static_cast<float>(numbers[i]), finite));
    store_run(values, to + place.to);
    // Whoever writes this writes the same.
    if (!finite) *refused = 1;
  }
};

template <typename Source, typename T, int width, typename Launch>
void convert_in_units(const ConvertDesc& desc, const Loops& loops, const Source* from, T* to, std::uint32_t* refused,
                      const Launch& launch) {
  if constexpr (width > 1) {
    constexpr int from_size = packet_size<Source>(width);
    constexpr int to_size = packet_size<T>(width);
    if (!aligned(from, from_size * sizeof(Source)) || !aligned(to, to_size * sizeof(T)) ||
        !loops.unit_fits(width, from_size, to_size)) {
      return convert_in_units < Source, T, width == 8 ? 4 : 1 > (desc, loops, from, to, refused, launch);
    }
  }
  loops.in_units(width).for_each_part(
      most_items, [&](const Loops& part, std::int64_t from_offset, std::int64_t to_offset) {
        const Nest nest(part);
        launch(ConvertUnits<Source, T, width>{ConvertNumber(desc), nest, from + from_offset, to + to_offset, refused},
               nest.items());
      });
}

/// Calls `launch(ConvertUnits, items)` with the widest units that fit: eight, four or single numbers.
template <typename Source, typename T, typename Launch>
void convert_units(const ConvertDesc& desc, const Source* source, T* dst, std::uint32_t* refused,
                   const Launch& launch) {
  if (desc.channels <= 0 || desc.source.intersect(desc.dst).empty()) return;
  const ConvertLoops loops = convert_loops(desc);
  convert_in_units<Source, T, 8>(desc, loops.loops, source + loops.from, dst + loops.to, refused, launch);
}

/// Calls `body` with a value of the type that numbers of the source have.
template <typename Body>
decltype(auto) with_source_type(DType type, const Body& body) {
  switch (type) {
    case DType::f32: return body(float{});
    case DType::bf16: return body(Bf16{});
    case DType::u16: return body(std::uint16_t{});
    case DType::i16: return body(std::int16_t{});
    case DType::u8: return body(std::uint8_t{});
  }
  return body(float{});
}

}  // namespace halograd::cuda
