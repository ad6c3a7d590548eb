#include "halograd/kernels/cpu/chain_rows.hpp"

#include "halograd/core/bf16.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#endif

// The row kernels hold their constants and sums in registers across a row, which plain loops that are cloned per
// processor (multiversion.hpp) do only by luck. So they are written with the compiler's vector types, which have to
// know the register width: the same text is compiled once for each level. Where there are no levels, the baseline
// serves (SSE2, NEON). A level says how a register of bf16 becomes the words of as many floats and back: the compiler
// goes by halves of registers.
#define INLINE [[gnu::always_inline]] inline

namespace halograd::cpu {
namespace {

namespace baseline {
constexpr int width = 4;
using Words = std::uint32_t __attribute__((vector_size(4 * width)));

INLINE Words words_of(const Bf16* from) {
  std::uint16_t __attribute__((vector_size(2 * width))) halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
  return __builtin_convertvector(halves, Words) << 16;
}
INLINE void keep_halves(const Words& words, Bf16* to) {
  const auto halves = __builtin_convertvector(words >> 16, std::uint16_t __attribute__((vector_size(2 * width))));
  __builtin_memcpy(&to->bits, &halves, sizeof(halves));
}
#include "halograd/kernels/cpu/chain_rows_level.inc"
}  // namespace baseline

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace avx2 {
constexpr int width = 8;
using Words = std::uint32_t __attribute__((vector_size(4 * width)));

INLINE Words words_of(const Bf16* from) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return __builtin_bit_cast(Words, _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
INLINE void keep_halves(const Words& words, Bf16* to) {
  const __m256i values = __builtin_bit_cast(__m256i, words >> 16);
  const __m256i halves = _mm256_permute4x64_epi64(_mm256_packus_epi32(values, values), 0b1000);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(halves));
}
#include "halograd/kernels/cpu/chain_rows_level.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace avx512 {
constexpr int width = 16;
using Words = std::uint32_t __attribute__((vector_size(4 * width)));

INLINE Words words_of(const Bf16* from) {
  constexpr __mmask32 upper = 0xAAAAAAAA;
  const __m512i places = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0,
                                          3, 0, 2, 0, 1, 0, 0, 0);
  const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m512i halves = _mm512_maskz_inserti64x4(0xFF, _mm512_setzero_si512(), loaded, 0);
  return __builtin_bit_cast(Words, _mm512_maskz_permutexvar_epi16(upper, places, halves));
}
INLINE void keep_halves(const Words& words, Bf16* to) {
  const __m512i places = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 31, 29, 27, 25, 23,
                                          21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __m512i halves = _mm512_maskz_permutexvar_epi16(~__mmask32{}, places, __builtin_bit_cast(__m512i, words));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_extracti64x4_epi64(0xF, halves, 0));
}
#include "halograd/kernels/cpu/chain_rows_level.inc"
}  // namespace avx512
#pragma GCC pop_options

template <typename Kernels>
Kernels pick() {
  Kernels kernels;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) {
    avx512::fill(kernels);
  } else if (__builtin_cpu_supports("x86-64-v3")) {
    avx2::fill(kernels);
  } else {
    baseline::fill(kernels);
  }
  return kernels;
}
#else
template <typename Kernels>
Kernels pick() {
  Kernels kernels;
  baseline::fill(kernels);
  return kernels;
}
#endif

}  // namespace

template <typename Kernels>
const Kernels& row_kernels() {
  static const Kernels kernels = pick<Kernels>();
  return kernels;
}

template const MoveKernels<float, float>& row_kernels();
template const MoveKernels<float, Bf16>& row_kernels();
template const MoveKernels<Bf16, float>& row_kernels();
template const MoveKernels<Bf16, Bf16>& row_kernels();
template const InputKernels<float>& row_kernels();
template const InputKernels<Bf16>& row_kernels();
template const ActivateKernels<float, float>& row_kernels();
template const ActivateKernels<Bf16, float>& row_kernels();
template const ActivateKernels<Bf16, Bf16>& row_kernels();
template const GradientKernels<float, float>& row_kernels();
template const GradientKernels<Bf16, float>& row_kernels();
template const GradientKernels<Bf16, Bf16>& row_kernels();

}  // namespace halograd::cpu
