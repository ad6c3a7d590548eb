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

/// How a network computes. `tf32` multiplies with 10 bits of mantissa and keeps f32 between layers (GPUs only); `bf16`
/// keeps activations and their gradients in bf16 and multiplies those, with sums in f32.
enum class Precision : std::uint8_t { f32, tf32, bf16 };

constexpr const char* precision_name(Precision precision) {
  return precision == Precision::f32 ? "f32" : precision == Precision::tf32 ? "tf32" : "bf16";
}

/// What activations and their gradients are kept in.
constexpr DType activation_type(Precision precision) {
  return precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

}  // namespace halograd
