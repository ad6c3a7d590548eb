#include "halograd/tensor/window.hpp"

namespace halograd {
namespace {

std::int64_t floor_divided(std::int64_t value, std::int64_t by) {
  return value >= 0 ? value / by : -((-value + by - 1) / by);
}

}  // namespace

Extent Window::output_extent(const Extent& input) const {
  Extent output;
  for (int i = 0; i < 3; ++i) {
    if (transposed) {
      output[i] = (input[i] - 1) * stride[i] - 2 * padding[i] + kernel[i] + output_padding[i];
      continue;
    }
    const std::int64_t room = input[i] + 2 * padding[i] - kernel[i];
    output[i] = room < 0 ? 0 : room / stride[i] + 1;
  }
  return output;
}

Box Window::input_needed(const Box& output, const Extent& input) const {
  Box needed;
  for (int i = 0; i < 3; ++i) {
    if (transposed) {
      // Input i reaches output o where o = i·s − p + k with 0 ≤ k < kernel.
      needed.lo[i] = std::max<std::int64_t>(0, floor_divided(output.lo[i] + padding[i] - kernel[i], stride[i]) + 1);
      needed.hi[i] = std::min(input[i], floor_divided(output.hi[i] - 1 + padding[i], stride[i]) + 1);
      continue;
    }
    needed.lo[i] = std::max<std::int64_t>(0, output.lo[i] * stride[i] - padding[i]);
    needed.hi[i] = std::min(input[i], (output.hi[i] - 1) * stride[i] - padding[i] + kernel[i]);
  }
  return needed;
}

}  // namespace halograd
