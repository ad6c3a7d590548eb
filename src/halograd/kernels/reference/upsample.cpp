#include "halograd/kernels/reference/upsample.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/reference/voxels.hpp"

#include <algorithm>
#include <cmath>

namespace halograd::reference {
namespace {

/// How much input i weighs in output o along one dimension.
double weight(const UpsampleDesc& desc, int dimension, std::int64_t i, std::int64_t o) {
  const std::int64_t factor = desc.factor[dimension];
  if (desc.kind == UpsampleKind::nearest) return o / factor == i ? 1 : 0;
  const double centre = (static_cast<double>(o) + 0.5) / static_cast<double>(factor) - 0.5;
  const double held = std::clamp(centre, 0.0, static_cast<double>(desc.in_extent[dimension] - 1));
  return std::max(0.0, 1 - std::abs(held - static_cast<double>(i)));
}

double weight(const UpsampleDesc& desc, const Index& input, const Index& output) {
  double product = 1;
  for (int i = 0; i < 3; ++i) product *= weight(desc, i, input[i], output[i]);
  return product;
}

/// The outputs that an input reaches.
Box outputs_of(const Window& window, const Index& input) {
  Box box;
  for (int i = 0; i < 3; ++i) {
    box.lo[i] = input[i] * window.stride[i] - window.padding[i];
    box.hi[i] = box.lo[i] + window.kernel[i];
  }
  return box;
}

}  // namespace

void upsample(const UpsampleDesc& desc, const float* x, float* y) {
  const Window window = upsample_window(desc.kind, desc.factor);
  parallel_for(desc.samples * desc.channels, [&](std::int64_t item) {
    const std::int64_t n = item / desc.channels;
    const std::int64_t c = item % desc.channels;
    for_each_voxel(desc.out, [&](const Index& output) {
      double sum = 0;
      for_each_voxel(window.input_needed({output, {output.d + 1, output.h + 1, output.w + 1}}, desc.in_extent),
                     [&](const Index& input) {
                       sum += weight(desc, input, output) * static_cast<double>(x[desc.src.offset(n, input) + c]);
                     });
      y[desc.dst.offset(n, output) + c] = static_cast<float>(sum);
    });
  });
}

void upsample_backward(const UpsampleDesc& desc, const float* dy, float* dx) {
  const Window window = upsample_window(desc.kind, desc.factor);
  parallel_for(desc.samples * desc.channels, [&](std::int64_t item) {
    const std::int64_t n = item / desc.channels;
    const std::int64_t c = item % desc.channels;
    for_each_voxel(desc.src.box, [&](const Index& input) {
      double sum = 0;
      for_each_voxel(outputs_of(window, input).intersect(desc.out), [&](const Index& output) {
        sum += weight(desc, input, output) * static_cast<double>(dy[desc.dst.offset(n, output) + c]);
      });
      dx[desc.src.offset(n, input) + c] = static_cast<float>(sum);
    });
  });
}

}  // namespace halograd::reference
