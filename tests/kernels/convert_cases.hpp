#pragma once

#include "halograd/core/bf16.hpp"
#include "halograd/kernels/convert.hpp"
#include "kernels/support.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace halograd::test {

/// Bytes of random numbers of a type: small ones, so that no transform makes them infinite.
inline std::vector<std::uint32_t> random_source(Dice& dice, DType type, std::int64_t count) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count * dtype_size(type) / 4 + 8));
  auto* const bytes = reinterpret_cast<unsigned char*>(words.data());
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(dice.between(0, 1000)) / 8;
    std::uint32_t bits = static_cast<std::uint32_t>(dice.between(0, 65535));
    if (type == DType::f32) bits = std::bit_cast<std::uint32_t>(value);
    if (type == DType::bf16) bits = Bf16(value).bits;
    if (type == DType::i16) bits %= 32768;
    std::memcpy(bytes + i * dtype_size(type), &bits, static_cast<std::size_t>(dtype_size(type)));
  }
  return words;
}

inline ConvertDesc random_conversion(Dice& dice) {
  ConvertDesc desc{
      .dtype = dice.one_of<DType>({DType::f32, DType::bf16, DType::u16, DType::i16, DType::u8}),
      .transform = dice.one_of<InputTransform>({InputTransform::none, InputTransform::log1p, InputTransform::window}),
      .channels = dice.one_of<std::int64_t>({1, 2, 3, 4, 8}),
      .channels_first = dice.between(0, 3) == 0};
  if (dice.between(0, 1) == 0) {
    desc.scale = 0.25;
    desc.offset = 3;
    desc.gain = 1.1;
    desc.shift = -0.2;
  }
  desc.window = {-20, 90};
  for (int i = 0; i < 3; ++i) {
    desc.flip[static_cast<std::size_t>(i)] = dice.between(0, 3) == 0;
    desc.dst.lo[i] = dice.between(0, 3);
    desc.dst.hi[i] = desc.dst.lo[i] + dice.one_of<std::int64_t>({1, 3, 4, 8});
    const bool margins = dice.between(0, 1) == 0;
    desc.source.lo[i] = desc.dst.lo[i] + (margins ? dice.between(-2, 2) : 0);
    desc.source.hi[i] = std::max(desc.source.lo[i] + 1, desc.dst.hi[i] + (margins ? dice.between(-2, 2) : 0));
  }
  return desc;
}

}  // namespace halograd::test
