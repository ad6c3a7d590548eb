#include "halograd/tensor/window.hpp"

namespace halograd {

Extent Window::output_extent(const Extent& input) const {
  Extent output;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t room = input[i] + 2 * padding[i] - kernel[i];
    output[i] = room < 0 ? 0 : room / stride[i] + 1;
  }
  return output;
}

Box Window::input_needed(const Box& output, const Extent& input) const {
  Box needed;
  for (int i = 0; i < 3; ++i) {
    needed.lo[i] = std::max<std::int64_t>(0, output.lo[i] * stride[i] - padding[i]);
    needed.hi[i] = std::min(input[i], (output.hi[i] - 1) * stride[i] - padding[i] + kernel[i]);
  }
  return needed;
}

}  // namespace halograd
