#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cuda/launch.cuh"
#include "halograd/kernels/cuda/upsample.hpp"
#include "halograd/kernels/cuda/upsample_element.hpp"

namespace halograd::cuda {

void upsample(const Queue& queue, const UpsampleDesc& desc, const void* x, void* y) {
  with_activation_type(desc.type, [&]<typename T>(T) {
    upsample_units<UpsampleForward>(
        desc, desc.out, static_cast<const T*>(x), static_cast<T*>(y),
        [&](const auto& body, std::int64_t items) { for_each_item(queue, "upsampling", body, items); });
  });
}

void upsample_backward(const Queue& queue, const UpsampleDesc& desc, const void* dy, void* dx) {
  with_activation_type(desc.type, [&]<typename T>(T) {
    upsample_units<UpsampleBackward>(
        desc, desc.src.box, static_cast<const T*>(dy), static_cast<T*>(dx),
        [&](const auto& body, std::int64_t items) { for_each_item(queue, "the gradient of upsampling", body, items); });
  });
}

}  // namespace halograd::cuda
