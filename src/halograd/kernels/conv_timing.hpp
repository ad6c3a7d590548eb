#pragma once

#include "halograd/kernels/conv3d.hpp"

#include <algorithm>
#include <string>
#include <vector>

// What timing convolutions alone is made of on every device.
namespace halograd {

/// One call run alone: which ("forward", "backward_data", "backward_weights"), how it is done, its best time.
struct ConvTiming {
  std::string call;
  std::string implementation;
  double seconds = 0;
};

/// The same convolution as one rank alone would do it for this output, all at once: zeros in place of the neighbours'
/// voxels. A deconvolution has its margins where the convolution has its output.
inline Conv3dDesc without_margins(Conv3dDesc desc) {
  desc.forward_parts.clear();
  for (int i = 0; i < 3; ++i) {
    if (desc.backwards) {
      desc.out[i] = std::min(desc.out[i], (desc.in[i] + desc.stride[i] - 1) / desc.stride[i]);
      desc.pad_lo[i] = std::min(desc.pad_lo[i], (desc.kernel[i] - 1) / 2);
      continue;
    }
    desc.in[i] = std::min(desc.in[i], desc.out[i] * desc.stride[i]);
    desc.pad_lo[i] = std::max(desc.pad_lo[i], (desc.kernel[i] - 1) / 2);
  }
  return desc;
}

/// Names as the layer calls them: of a deconvolution, forward is the convolution's backward_data.
constexpr const char* forward_name(const Conv3dDesc& desc) {
  return desc.backwards ? "backward_data" : "forward";
}
constexpr const char* backward_data_name(const Conv3dDesc& desc) {
  return desc.backwards ? "forward" : "backward_data";
}

/// What buffers are filled with: zeros may run faster, denormals slower.
constexpr float ordinary_number(std::size_t index) {
  return static_cast<float>(static_cast<int>(index % 13) - 6) * 0.1F;
}

/// Times each call that a step makes of a convolution: best_seconds(call) gives the seconds of one. The weights are in
/// place; `w` gets their gradient.
template <typename BestSeconds>
std::vector<ConvTiming> time_calls(const Conv3dDesc& desc, Conv3d& conv, void* x, void* y, float* w,
                                   const BestSeconds& best_seconds) {
  const std::vector<std::string> implementations = conv.implementations();
  std::vector<ConvTiming> result;
  const auto time = [&](const char* name, const auto& call) {
    result.push_back({name, implementations[result.size()], best_seconds(call)});
  };
  if (desc.calls_forward()) time(forward_name(desc), [&] { conv.forward(x, y); });
  if (desc.calls_backward_data()) time(backward_data_name(desc), [&] { conv.backward_data(y, x); });
  if (desc.calls_backward_weights()) time("backward_weights", [&] { conv.backward_weights(x, y, w); });
  return result;
}

}  // namespace halograd
