#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cuda/launch.cuh"
#include "halograd/kernels/cuda/region_copy.hpp"
#include "halograd/kernels/cuda/region_copy_index.hpp"

namespace halograd::cuda {
namespace {

template <bool add>
void move_region(const Queue& queue, const char* what, const RegionCopy& copy, const void* from, void* to) {
  with_activation_type(copy.type, [&]<typename T>(T) {
    cuda::move_region<add>(copy, static_cast<const T*>(from), static_cast<T*>(to),
                           [&](const auto& body, std::int64_t items) { move_items(queue, what, body, items); });
  });
}

}  // namespace

void copy_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to) {
  move_region<false>(queue, "copying a region", copy, from, to);
}

void add_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to) {
  move_region<true>(queue, "adding a region", copy, from, to);
}

}  // namespace halograd::cuda
