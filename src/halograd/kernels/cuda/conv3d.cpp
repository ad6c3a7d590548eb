#include "halograd/kernels/cuda/conv3d.hpp"

#include "halograd/kernels/cuda/algorithm_search.hpp"
#include "halograd/kernels/cuda/device_buffer.hpp"
#include "halograd/kernels/cuda/pack_weights.hpp"
#include "halograd/kernels/cuda/planned_pass.hpp"
#include "halograd/kernels/cuda/workspace.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halograd::cuda {
namespace {

std::int64_t x_bytes(const Conv3dDesc& desc) {
  return dtype_size(activation_type(desc.precision)) * desc.samples * desc.in_channels * desc.in.volume();
}

WeightLayout weight_layout(const Conv3dDesc& desc) {
  return {desc.out_channels, desc.in_channels, desc.kernel.volume()};
}

/// No samples or no voxels on this rank: no sum has a term.
class EmptyConv3d final : public Conv3d {
public:
  EmptyConv3d(const Queue& queue, const Conv3dDesc& desc)
      : queue_(queue), x_bytes_(cuda::x_bytes(desc)), w_bytes_(4 * weight_layout(desc).elements()) {}

  void set_weights(const float*) override {}
  void forward(const void*, void*) override {}
  void backward_data(const void*, void* dx) override { queue_.clear(dx, x_bytes_); }
  void backward_weights(const void*, const void*, float* dw) override { queue_.clear(dw, w_bytes_); }
  [[nodiscard]] std::int64_t held_bytes() const override { return 0; }
  [[nodiscard]] std::vector<std::string> implementations() const override { return {}; }

private:
  Queue queue_;
  std::int64_t x_bytes_;
  std::int64_t w_bytes_;
};

/// Weights and their gradient are kept packed, in the activations' type: cuDNN has no engine that sums the gradient of
/// bf16 tensors into f32 (9.19 has none for compute capability 8.0, 9.0 and 10.0), so that each piece's sum, taken
/// in f32, is rounded to bf16 once.
class CudnnConv3d final : public Conv3d {
public:
  CudnnConv3d(const Queue& queue, const Conv3dDesc& desc)
      : queue_(queue),
        workspace_(workspace_of(queue)),
        type_(activation_type(desc.precision)),
        layout_(weight_layout(desc)),
        x_bytes_(cuda::x_bytes(desc)) {
    const CudnnTarget target(queue);
    const ConvPart whole = whole_part(desc);
    const auto choose = [&](ConvPass pass, const ConvPart& part) { return chosen_pass(queue, target, pass, part); };
    if (desc.calls_forward()) {
      for (const Box& box : desc.forward_parts) forward_.push_back(choose(ConvPass::forward, outputs_of(whole, box)));
      if (forward_.empty()) forward_.push_back(choose(ConvPass::forward, whole));
    }
    if (desc.calls_backward_data()) backward_data_ = choose(ConvPass::backward_data, whole);
    if (desc.calls_backward_weights()) backward_weights_ = choose(ConvPass::backward_weights, whole);
    for (const PlannedPass& pass : forward_) workspace_->grow(pass.workspace_bytes());
    for (const auto* pass : {&backward_data_, &backward_weights_}) {
      if (*pass) workspace_->grow((*pass)->workspace_bytes());
    }
    const std::int64_t packed = dtype_size(type_) * layout_.elements();
    weights_ = DeviceBuffer(packed, "allocating a convolution's packed weights");
    if (backward_weights_) gradient_ = DeviceBuffer(packed, "allocating a convolution's packed weight gradient");
  }

  void set_weights(const float* w) override { pack_weights(queue_, layout_, type_, w, weights_.data()); }

  void forward(const void* x, void* y) override {
    for (std::size_t part = 0; part < forward_.size(); ++part) forward_part(part, x, y);
  }

  void forward_part(std::size_t part, const void* x, void* y) override {
    PlannedPass& pass = forward_[part];
    for (std::size_t piece = 0; piece < pass.pieces(); ++piece) run(pass, piece, x, y, weights_);
  }

  void backward_data(const void* dy, void* dx) override {
    if (!backward_data_->covers_input()) queue_.clear(dx, x_bytes_);
    for (std::size_t piece = 0; piece < backward_data_->pieces(); ++piece) {
      run(*backward_data_, piece, dx, dy, weights_);
    }
  }

  void backward_weights(const void* x, const void* dy, float* dw) override {
    for (std::size_t piece = 0; piece < backward_weights_->pieces(); ++piece) {
      run(*backward_weights_, piece, x, dy, gradient_);
      unpack_weights(queue_, layout_, type_, gradient_.data(), dw, piece > 0);
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override { return weights_.bytes() + gradient_.bytes(); }

  [[nodiscard]] std::vector<std::string> implementations() const override {
    std::vector<std::string> names;
    if (!forward_.empty()) names.push_back(forward_.front().name());  // of its parts, the one that is nearly all
    for (const auto* pass : {&backward_data_, &backward_weights_}) {
      if (*pass) names.push_back((*pass)->name());
    }
    return names;
  }

private:
  void run(PlannedPass& pass, std::size_t piece, const void* x, const void* y, const DeviceBuffer& w) {
    static_cast<void>(stream_of(queue_));  // the GPU becomes the calling thread's, whichever thread that is
    pass.run(piece, x, y, w.data(), workspace_->data());
  }

  Queue queue_;
  std::shared_ptr<Workspace> workspace_;
  DType type_;
  WeightLayout layout_;
  std::int64_t x_bytes_;
  std::vector<PlannedPass> forward_;  ///< of each part
  std::optional<PlannedPass> backward_data_;
  std::optional<PlannedPass> backward_weights_;
  DeviceBuffer weights_;
  DeviceBuffer gradient_;
};

}  // namespace

std::unique_ptr<Conv3d> make_conv3d(const Queue& queue, const Conv3dDesc& desc) {
  if (desc.samples * desc.out.volume() == 0) return std::make_unique<EmptyConv3d>(queue, desc);
  return std::make_unique<CudnnConv3d>(queue, desc);
}

}  // namespace halograd::cuda
