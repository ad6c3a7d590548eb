#include "halograd/kernels/cpu/chain_rows.hpp"

// The row kernels hold their constants and sums in registers across a row, which plain loops that are cloned per
// processor (multiversion.hpp) do only by luck. So they are written with the compiler's vector types, which have to
// know the register width: the same text is compiled once for each level. Where there are no levels, the baseline
// serves (SSE2, NEON).
#define INLINE [[gnu::always_inline]] inline

namespace halograd::cpu {
namespace {

namespace baseline {
constexpr const char* level = "baseline";
constexpr int width = 4;
#include "halograd/kernels/cpu/chain_rows_level.inc"
}  // namespace baseline

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace avx2 {
constexpr const char* level = "avx2";
constexpr int width = 8;
#include "halograd/kernels/cpu/chain_rows_level.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace avx512 {
constexpr const char* level = "avx512";
constexpr int width = 16;
#include "halograd/kernels/cpu/chain_rows_level.inc"
}  // namespace avx512
#pragma GCC pop_options

const RowKernels& pick() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return avx512::kernels;
  if (__builtin_cpu_supports("x86-64-v3")) return avx2::kernels;
  return baseline::kernels;
}
#else
const RowKernels& pick() {
  return baseline::kernels;
}
#endif

}  // namespace

const RowKernels& row_kernels() {
  static const RowKernels& kernels = pick();
  return kernels;
}

}  // namespace halograd::cpu
