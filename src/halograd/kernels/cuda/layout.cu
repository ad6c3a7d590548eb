#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cuda/launch.cuh"
#include "halograd/kernels/cuda/layout.hpp"
#include "halograd/kernels/cuda/layout_index.hpp"

namespace halograd::cuda {

void to_channels_first(const Queue& queue, DType type, const LocalShape& shape, const void* channels_last,
                       float* channels_first) {
  with_activation_type(type, [&]<typename T>(T) {
    move_numbers(to_channels_first_loops(shape), static_cast<const T*>(channels_last), channels_first,
                 [&](const auto& body, std::int64_t items) {
                   for_each_item(queue, "turning channels to the front", body, items);
                 });
  });
}

void to_channels_last(const Queue& queue, DType type, const LocalShape& shape, const float* channels_first,
                      void* channels_last) {
  with_activation_type(type, [&]<typename T>(T) {
    move_numbers(to_channels_last_loops(shape), channels_first, static_cast<T*>(channels_last),
                 [&](const auto& body, std::int64_t items) {
                   for_each_item(queue, "turning channels to the back", body, items);
                 });
  });
}

}  // namespace halograd::cuda
