#include "halograd/kernels/reference/layout.hpp"

#include "halograd/core/bf16.hpp"

namespace halograd::reference {
namespace {

/// Calls body(channels-last index, channels-first index) of every element.
template <typename Body>
void for_each_element(const LocalShape& shape, Body&& body) {
  const std::int64_t voxels = shape.extent.volume();
  for (std::int64_t n = 0; n < shape.samples; ++n) {
    const std::int64_t sample = n * voxels * shape.channels;
    for (std::int64_t v = 0; v < voxels; ++v) {
      for (std::int64_t c = 0; c < shape.channels; ++c) body(sample + v * shape.channels + c, sample + c * voxels + v);
    }
  }
}

}  // namespace

void to_channels_first(DType type, const LocalShape& shape, const void* channels_last, float* channels_first) {
  with_activation_type(type, [&]<typename T>(T) {
    const T* const from = static_cast<const T*>(channels_last);
    for_each_element(
        shape, [&](std::int64_t last, std::int64_t first) { channels_first[first] = static_cast<float>(from[last]); });
  });
}

void to_channels_last(DType type, const LocalShape& shape, const float* channels_first, void* channels_last) {
  with_activation_type(type, [&]<typename T>(T) {
    T* const to = static_cast<T*>(channels_last);
    for_each_element(shape, [&](std::int64_t last, std::int64_t first) { to[last] = T(channels_first[first]); });
  });
}

}  // namespace halograd::reference
