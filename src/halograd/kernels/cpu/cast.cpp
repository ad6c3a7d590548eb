#include "halograd/kernels/cpu/cast.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/multiversion.hpp"

namespace halograd::cpu {
namespace {

HALOGRAD_MULTIVERSION void widen_part(const Bf16* __restrict from, float* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

HALOGRAD_MULTIVERSION void narrow_part(const float* __restrict from, Bf16* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = Bf16(from[i]);
}

HALOGRAD_MULTIVERSION void accumulate_part(const float* __restrict terms, float* __restrict sums, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += terms[i];
}

/// Calls part(from, to, count) for each thread's share.
template <typename From, typename To>
void share(const From* from, To* to, std::int64_t count, void (*part)(const From*, To*, std::int64_t)) {
  // Parts of whole cache lines, so that no line is two threads'.
  constexpr std::int64_t chunk = 64;
  parallel_ranges((count + chunk - 1) / chunk, [&](std::int64_t begin, std::int64_t end, int) {
    const std::int64_t first = begin * chunk;
    part(from + first, to + first, (end * chunk < count ? end * chunk : count) - first);
  });
}

}  // namespace

void widen(const Bf16* from, std::int64_t count, float* to) {
  share(from, to, count, widen_part);
}

void narrow(const float* from, std::int64_t count, Bf16* to) {
  share(from, to, count, narrow_part);
}

void accumulate(const float* terms, std::int64_t count, float* sums) {
  share(terms, sums, count, accumulate_part);
}

}  // namespace halograd::cpu
