#include "halograd/kernels/cpu/winograd_transform.hpp"

// Vector types instead of cloned loops, once a register width, for the reason chain_rows.cpp gives.
#define INLINE [[gnu::always_inline]] inline

namespace halograd::cpu {
namespace {

/// Points of 4 outputs: 0, ±near, ±far and infinity. Of the pairs tried these have the least rounding errors, half of
/// those of the usual ±1 and ±2, and all numbers in the transforms of inputs and outputs are exact in float.
constexpr float near = 0.625F;
constexpr float far = 1.5F;
constexpr float near2 = near * near;
constexpr float far2 = far * far;
constexpr float zero_share = 1 / (near2 * far2);
constexpr float near_share = 1 / (2 * near2 * (near2 - far2));
constexpr float far_share = 1 / (2 * far2 * (far2 - near2));

namespace baseline {
constexpr const char* level = "baseline";
constexpr int width = 4;
#include "halograd/kernels/cpu/winograd_transform_level.inc"
}  // namespace baseline

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace avx2 {
constexpr const char* level = "avx2";
constexpr int width = 8;
#include "halograd/kernels/cpu/winograd_transform_level.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace avx512 {
constexpr const char* level = "avx512";
constexpr int width = 16;
#include "halograd/kernels/cpu/winograd_transform_level.inc"
}  // namespace avx512
#pragma GCC pop_options

const WinogradKernels& pick() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return avx512::kernels;
  if (__builtin_cpu_supports("x86-64-v3")) return avx2::kernels;
  return baseline::kernels;
}
#else
const WinogradKernels& pick() {
  return baseline::kernels;
}
#endif

}  // namespace

const WinogradKernels& winograd_kernels() {
  static const WinogradKernels& kernels = pick();
  return kernels;
}

}  // namespace halograd::cpu
