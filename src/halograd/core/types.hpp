#pragma once

#include <cstddef>
#include <cstdint>

namespace halograd {

/// Element types of tensors and files. Weights, optimiser state and statistics are always f32 (sums f64).
enum class DType : std::uint8_t { f32, bf16, u16, i16, u8 };

constexpr std::int64_t dtype_size(DType type) {
  switch (type) {
    case DType::f32: return 4;
    case DType::bf16:
    case DType::u16:
    case DType::i16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

}  // namespace halograd
