#include "halograd/kernels/reference/chain_steps.hpp"

#include "halograd/core/parallel.hpp"

#include <cstddef>
#include <limits>

namespace halograd::reference {
namespace {

/// The factor dropout puts on an output element: 0 or 1/keep.
double dropout_factor(const ChainDesc& desc, const DropoutKey& dropout, std::int64_t n, const Index& at,
                      std::int64_t channel) {
  if (!desc.training || desc.keep >= 1) return 1;
  const Extent& extent = desc.out_extent;
  const std::int64_t sample = dropout.first_sample + n;
  const std::int64_t voxel = ((sample * extent.d + at.d) * extent.h + at.h) * extent.w + at.w;
  const auto element = static_cast<std::uint64_t>(voxel * desc.channels + channel);
  return dropout.stream.uniform(element) < desc.keep ? 1.0 / static_cast<double>(desc.keep) : 0.0;
}

Index window_start(const Window& window, const Index& output) {
  Index start;
  for (int i = 0; i < 3; ++i) start[i] = output[i] * window.stride[i] - window.padding[i];
  return start;
}

/// Calls `body(sample, voxel)` for all samples and the box's voxels, depth planes spread over the threads.
template <typename Body>
void for_each_sample_voxel(std::int64_t samples, const Box& box, const Body& body) {
  if (box.empty()) return;
  const std::int64_t depth = box.extent().d;
  parallel_for(samples * depth, [&](std::int64_t plane) {
    Box slab = box;
    slab.lo.d = box.lo.d + plane % depth;
    slab.hi.d = slab.lo.d + 1;
    for_each_voxel(slab, [&](const Index& at) { body(plane / depth, at); });
  });
}

void activate_box(const ChainDesc& desc, const Voxels<const float>& y, const Box& box, const Normalisation& norm,
                  const Voxels<float>& activations) {
  for_each_sample_voxel(desc.samples, box, [&](std::int64_t n, const Index& at) {
    for (std::int64_t c = 0; c < desc.channels; ++c) {
      const float z = normalised(desc, norm, n, c, y.voxel(n, at)[c]);
      activations.voxel(n, at)[c] = z > 0 ? z : desc.negative_slope * z;
    }
  });
}

/// The average over the window, where padding counts as zeros.
double average(const ChainDesc& desc, const Voxels<float>& activations, std::int64_t n, const Box& window,
               std::int64_t channel) {
  double sum = 0;
  for_each_voxel(window, [&](const Index& at) { sum += static_cast<double>(activations.voxel(n, at)[channel]); });
  return sum / static_cast<double>(desc.window.kernel.volume());
}

struct Winner {
  double value = -std::numeric_limits<double>::infinity();
  std::int64_t position = 0;  ///< in the whole window, padding counted, w fastest
};

Winner maximum(const ChainDesc& desc, const Voxels<float>& activations, std::int64_t n, const Box& window,
               const Index& start, std::int64_t channel) {
  Winner winner;
  bool first = true;
  for_each_voxel(window, [&](const Index& at) {
    const double value = static_cast<double>(activations.voxel(n, at)[channel]);
    if (!first && !(value > winner.value)) return;
    const Index offset = Box{at, at}.relative_to(start).lo;
    winner = {value, (offset.d * desc.window.kernel.h + offset.h) * desc.window.kernel.w + offset.w};
    first = false;
  });
  return winner;
}

/// The outputs of `out` whose windows hold the input voxel.
Box readers_of(const ChainDesc& desc, const Index& input) {
  Box readers;
  for (int i = 0; i < 3; ++i) {
    // j·s − p ≤ input ≤ j·s − p + k − 1
    const std::int64_t stride = desc.window.stride[i];
    const std::int64_t last = (input[i] + desc.window.padding[i]) / stride;
    const std::int64_t below = input[i] + desc.window.padding[i] - desc.window.kernel[i];  // the window ends before it
    const std::int64_t first = below < 0 ? 0 : below / stride + 1;
    readers.lo[i] = first;
    readers.hi[i] = last + 1;
  }
  return readers.intersect(desc.out);
}

}  // namespace

Box face_box(const ChainDesc& desc, int dimension, bool high, bool inside) {
  Box box = desc.in;
  for (int i = 0; i < dimension; ++i) {
    box.lo[i] -= desc.faces.lo[i];
    box.hi[i] += desc.faces.hi[i];
  }
  const Halo& widths = inside ? desc.returned : desc.faces;
  const std::int64_t width = high ? widths.hi[dimension] : widths.lo[dimension];
  const std::int64_t edge = high ? desc.in.hi[dimension] : desc.in.lo[dimension];
  const bool above = high != inside;
  box.lo[dimension] = above ? edge : edge - width;
  box.hi[dimension] = above ? edge + width : edge;
  return box;
}

std::int64_t statistics_index(const ChainDesc& desc, std::int64_t n, std::int64_t channel) {
  return desc.per_sample ? n * desc.channels + channel : channel;
}

float normalised(const ChainDesc& desc, const Normalisation& norm, std::int64_t n, std::int64_t channel, float y,
                 double* plain) {
  if (!desc.normalise) {
    if (plain != nullptr) *plain = static_cast<double>(y);
    return y;
  }
  const std::int64_t at = statistics_index(desc, n, channel);
  const double centred = static_cast<double>(y) - static_cast<double>(norm.mean[at]);
  const double unit = centred * static_cast<double>(norm.inverse_deviation[at]);
  if (plain != nullptr) *plain = unit;
  return static_cast<float>(unit * static_cast<double>(norm.gamma[channel]) + static_cast<double>(norm.beta[channel]));
}

void activate(const ChainDesc& desc, const float* y, const FaceBuffers<const float>& faces, const Normalisation& norm,
              const Voxels<float>& activations) {
  activate_box(desc, {y, desc.src.box, desc.src.pitch}, desc.in, norm, activations);
  const auto activate_face = [&](const float* face, const Box& box) {
    if (face != nullptr) activate_box(desc, {face, box, desc.channels}, box, norm, activations);
  };
  for (int i = 0; i < 3; ++i) {
    activate_face(faces.lo[static_cast<std::size_t>(i)], face_box(desc, i, false, false));
    activate_face(faces.hi[static_cast<std::size_t>(i)], face_box(desc, i, true, false));
  }
}

void pool_and_drop(const ChainDesc& desc, const Voxels<float>& activations, const DropoutKey& dropout, const Box& part,
                   const Voxels<float>& dst, std::uint8_t* argmax) {
  const Voxels<std::uint8_t> winners{argmax, desc.out, desc.channels};
  const Box volume = Box::whole(desc.in_extent);
  for_each_sample_voxel(desc.samples, part, [&](std::int64_t n, const Index& at) {
    const Index start = window_start(desc.window, at);
    const Extent& kernel = desc.window.kernel;
    const Box window = Box{start, {start.d + kernel.d, start.h + kernel.h, start.w + kernel.w}}.intersect(volume);
    for (std::int64_t c = 0; c < desc.channels; ++c) {
      double pooled = 0;
      if (desc.pool == PoolKind::max) {
        const Winner winner = maximum(desc, activations, n, window, start, c);
        if (argmax != nullptr) winners.voxel(n, at)[c] = static_cast<std::uint8_t>(winner.position);
        pooled = winner.value;
      } else {
        pooled = average(desc, activations, n, window, c);
      }
      if (dst.box.contains(at)) {
        dst.voxel(n, at)[c] = static_cast<float>(pooled * dropout_factor(desc, dropout, n, at, c));
      }
    }
  });
}

void activation_gradient(const ChainDesc& desc, const Voxels<const float>& dout, const std::uint8_t* argmax,
                         const DropoutKey& dropout, const Voxels<double>& gradient) {
  const Voxels<const std::uint8_t> winners{argmax, desc.out, desc.channels};
  const Extent& kernel = desc.window.kernel;
  for_each_sample_voxel(desc.samples, gradient.box, [&](std::int64_t n, const Index& input) {
    double* sums = gradient.voxel(n, input);
    for (std::int64_t c = 0; c < desc.channels; ++c) sums[c] = 0;
    for_each_voxel(readers_of(desc, input).intersect(dout.box), [&](const Index& output) {
      const Index offset = Box{input, input}.relative_to(window_start(desc.window, output)).lo;
      const std::int64_t position = (offset.d * kernel.h + offset.h) * kernel.w + offset.w;
      for (std::int64_t c = 0; c < desc.channels; ++c) {
        const double given =
            static_cast<double>(dout.voxel(n, output)[c]) * dropout_factor(desc, dropout, n, output, c);
        if (desc.pool != PoolKind::max) {
          sums[c] += given / static_cast<double>(kernel.volume());
        } else if (winners.voxel(n, output)[c] == position) {
          sums[c] += given;
        }
      }
    });
  });
}

void add_received(const ChainDesc& desc, const FaceBuffers<const float>& received, const Voxels<double>& gradient) {
  const auto add = [&](const float* buffer, const Box& box) {
    if (buffer == nullptr) return;
    const Voxels<const float> from{buffer, box, desc.channels};
    for_each_sample_voxel(desc.samples, box.intersect(desc.in), [&](std::int64_t n, const Index& at) {
      for (std::int64_t c = 0; c < desc.channels; ++c) {
        gradient.voxel(n, at)[c] += static_cast<double>(from.voxel(n, at)[c]);
      }
    });
  };
  for (int i = 0; i < 3; ++i) {
    add(received.lo[static_cast<std::size_t>(i)], face_box(desc, i, false, true));
    add(received.hi[static_cast<std::size_t>(i)], face_box(desc, i, true, true));
  }
}

}  // namespace halograd::reference
