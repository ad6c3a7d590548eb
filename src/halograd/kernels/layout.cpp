#include "halograd/kernels/layout.hpp"

namespace halograd {

void to_channels_first(const LocalShape& shape, const float* channels_last, float* channels_first) {
  const std::int64_t voxels = shape.extent.volume();
  for (std::int64_t n = 0; n < shape.samples; ++n) {
    const float* from = channels_last + n * voxels * shape.channels;
    float* to = channels_first + n * voxels * shape.channels;
    for (std::int64_t v = 0; v < voxels; ++v) {
      for (std::int64_t c = 0; c < shape.channels; ++c) to[c * voxels + v] = from[v * shape.channels + c];
    }
  }
}

void to_channels_last(const LocalShape& shape, const float* channels_first, float* channels_last) {
  const std::int64_t voxels = shape.extent.volume();
  for (std::int64_t n = 0; n < shape.samples; ++n) {
    const float* from = channels_first + n * voxels * shape.channels;
    float* to = channels_last + n * voxels * shape.channels;
    for (std::int64_t v = 0; v < voxels; ++v) {
      for (std::int64_t c = 0; c < shape.channels; ++c) to[v * shape.channels + c] = from[c * voxels + v];
    }
  }
}

}  // namespace halograd
