#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"
#include "halograd/tensor/box.hpp"

#include <memory>
#include <string>
#include <vector>

namespace halograd {

/// A convolution on one rank. Inputs are a dense NDHWC buffer that already holds the neighbours' voxels (margins), so
/// that `pad_lo` counts the zeros before its first voxel only where the volume ends there; zeros behind the last voxel
/// follow from the extents.
struct Conv3dDesc {
  std::int64_t samples = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Extent in;   ///< of the input buffer, margins included
  Extent out;  ///< of the output buffer
  Extent kernel = Extent::cube(1);
  Extent stride = Extent::cube(1);
  Extent pad_lo = {};
  bool input_gradient = true;            ///< whether backward_data will be called
  bool training = true;                  ///< whether backward_weights (and backward_data) will be called
  Precision precision = Precision::f32;  ///< x, y and their gradients are kept in its activation_type
  bool direct = false;     ///< one algorithm however few voxels a rank has, so that outputs round alike on all grids
  bool backwards = false;  ///< serves a deconvolution: backward_data and forward, and their conditions, swap roles
  /// Boxes of outputs, together all of them, each once, that forward_part() computes by itself: those that need no
  /// margins while these are on their way, then the others. None where the backend takes no boxes (KernelTraits).
  std::vector<Box> forward_parts{};

  [[nodiscard]] bool calls_forward() const { return !backwards || (training && input_gradient); }
  [[nodiscard]] bool calls_backward_data() const { return backwards || (training && input_gradient); }
  [[nodiscard]] bool calls_backward_weights() const { return training; }

  /// Multiply-adds count as two; a sum over the output voxels, padding included.
  [[nodiscard]] double forward_flops() const {
    return 2.0 * static_cast<double>(samples * in_channels * out_channels * out.volume() * kernel.volume());
  }
};

/// y = conv(x, w), without bias. x: [N,D,H,W,I] of `in`; y, dy: [N,D,H,W,O] of `out`; w, dw: [O,I,kd,kh,kw] f32 in
/// plain order, as PyTorch has them. Every result is assigned, never accumulated. Works on the queue it was made for.
class Conv3d {
public:
  virtual ~Conv3d() = default;
  /// Takes new weights, which stay readable until the next call; call after each update, before the next run.
  virtual void set_weights(const float* w) = 0;
  virtual void forward(const void* x, void* y) = 0;
  /// The outputs in forward_parts[part]; reads of x only what their windows cover. Without parts, 0 is all outputs.
  virtual void forward_part(std::size_t part, const void* x, void* y);
  /// dx: [N,D,H,W,I] of `in`, margins included: there it holds what this rank adds to its neighbours' gradients.
  virtual void backward_data(const void* dy, void* dx) = 0;
  virtual void backward_weights(const void* x, const void* dy, float* dw) = 0;
  /// Bytes held beside the buffers passed in: packed weights and scratch memory of its own.
  [[nodiscard]] virtual std::int64_t held_bytes() const = 0;
  /// Names of the implementations chosen: forward, backward data, backward weights (fewer where not made).
  [[nodiscard]] virtual std::vector<std::string> implementations() const = 0;
};

inline void Conv3d::forward_part(std::size_t /*part*/, const void* x, void* y) {
  forward(x, y);
}

/// Throws ResourceError where the backend has no fast implementation or memory runs out, UsageError for a precision or
/// parts that it does not take.
std::unique_ptr<Conv3d> make_conv3d(const Queue& queue, const Conv3dDesc& desc);

}  // namespace halograd
